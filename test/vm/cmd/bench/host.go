package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"weir/test/vm/bench"
)

// onHost runs the resolver's own benchmark on this machine, on its loopback and without any program in its kernel.
func onHost(ctx context.Context, repo string) ([]result, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Queries", "-count", "5", "./internal/names")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = repo, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run the resolver's benchmark: %w: %s", err, out.Bytes())
	}
	var all []result
	for _, one := range []struct{ name, what string }{
		{"resolver_host_queries_per_s", "BenchmarkQueries/allowed"}, {"resolver_host_unknown_queries_per_s", "BenchmarkQueries/unknown"},
	} {
		values, err := rates(out.String(), one.what)
		if err != nil {
			return nil, err
		}
		all = append(all, newResult(one.name, bench.Quantile(values, 0.5), rate, bound(5000, true), "host"))
	}
	return all, nil
}

// rates reads queries/s of a benchmark out of what go test prints.
func rates(text, name string) ([]float64, error) {
	var all []float64
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], name) {
			continue
		}
		for i := 1; i < len(fields); i++ {
			if fields[i] != rate {
				continue
			}
			v, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("read the resolver's benchmark: %w", err)
			}
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read the resolver's benchmark: %s is not in %q", name, text)
	}
	return all, nil
}
