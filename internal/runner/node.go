package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	requestTime = 10 * time.Second
	maxAnswer   = 8 << 20
	// notReady is how many looks in a row must find the sensor not ready before the node is closed.
	notReady = 3
	effect   = "NoSchedule"
)

// NodeOptions say what is kept true, or waited for: then Node, Pod and Taint are of no account. All others must be set.
type NodeOptions struct {
	API    string // base URL of the API server
	CA     string // file
	Token  string // file; read for each request, since it is replaced while it is valid
	Node   string
	Pod    string // the sensor's
	Space  string // namespace of Pod
	Name   string // of the sensor's container, or the DaemonSet
	Taint  string // key of the node's taint
	Every  time.Duration
	Logf   func(format string, args ...any)
	client *http.Client
}

// InCluster fills in where a pod finds the API server; dir is that of the service account.
func (o *NodeOptions) InCluster(getenv func(string) string, dir string) error {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return errors.New("find the API server: KUBERNETES_SERVICE_HOST and _PORT are not set: run this in a pod")
	}
	o.API = (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}).String()
	o.CA, o.Token = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	return nil
}

// taint is one of a node's; what else it has is kept as it is.
type taint struct {
	Key       string `json:"key"`
	Value     string `json:"value,omitempty"`
	Effect    string `json:"effect"`
	TimeAdded string `json:"timeAdded,omitempty"`
}

// connect makes the client.
func (o *NodeOptions) connect() error {
	pem, err := os.ReadFile(o.CA)
	if err != nil {
		return fmt.Errorf("read the API server's certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("read %s: no certificate in it", o.CA)
	}
	o.client = &http.Client{Timeout: requestTime, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return nil
}

// KeepNode looks every o.Every until ctx ends. What fails is told once, and tried again.
func KeepNode(ctx context.Context, o NodeOptions) error {
	missed := 0
	return o.each(ctx, func() (bool, error) {
		ready, err := o.ready(ctx)
		if err == nil && ready {
			missed = 0
			err = o.set(ctx, false)
		} else if err == nil {
			if missed++; missed >= notReady {
				err = o.set(ctx, true)
			}
		}
		return false, err
	})
}

// AwaitDaemonSet looks every o.Every until each node that shall have a pod of o.Space's DaemonSet o.Name has a ready one, and tells how
// many have. What fails is told once, and tried again.
func AwaitDaemonSet(ctx context.Context, o NodeOptions) error {
	told := ""
	err := o.each(ctx, func() (bool, error) {
		var set struct {
			Metadata struct {
				Generation int64 `json:"generation"`
			} `json:"metadata"`
			Status struct {
				Observed int64 `json:"observedGeneration"`
				Want     int   `json:"desiredNumberScheduled"`
				Ready    int   `json:"numberReady"`
			} `json:"status"`
		}
		if err := o.do(ctx, http.MethodGet, "/apis/apps/v1/namespaces/"+url.PathEscape(o.Space)+"/daemonsets/"+url.PathEscape(o.Name), nil, &set); err != nil {
			return false, err
		}
		if set.Status.Observed < set.Metadata.Generation {
			return false, nil
		}
		if now := fmt.Sprintf("%s: %d of %d nodes are done", o.Name, set.Status.Ready, set.Status.Want); now != told {
			o.Logf("%s", now)
			told = now
		}
		return set.Status.Ready >= set.Status.Want, nil
	})
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: ended before every node was done", o.Name)
	}
	return err
}

// each calls do every o.Every until that is done or ctx ends.
func (o *NodeOptions) each(ctx context.Context, do func() (bool, error)) error {
	if err := o.connect(); err != nil {
		return err
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	told := ""
	for {
		done, err := do()
		if done || ctx.Err() != nil {
			return nil
		}
		if now := fmt.Sprint(err); err != nil && now != told {
			o.Logf("%v", err)
			told = now
		} else if err == nil {
			told = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ready says whether the sensor's container is.
func (o *NodeOptions) ready(ctx context.Context) (bool, error) {
	var pod struct {
		Status struct {
			ContainerStatuses []struct {
				Name  string `json:"name"`
				Ready bool   `json:"ready"`
			} `json:"containerStatuses"`
		} `json:"status"`
	}
	if err := o.do(ctx, http.MethodGet, "/api/v1/namespaces/"+url.PathEscape(o.Space)+"/pods/"+url.PathEscape(o.Pod), nil, &pod); err != nil {
		return false, err
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == o.Name {
			return c.Ready, nil
		}
	}
	return false, nil // it has not been started
}

// set puts the taint on the node, or takes it away.
func (o *NodeOptions) set(ctx context.Context, closed bool) error {
	path := "/api/v1/nodes/" + url.PathEscape(o.Node)
	var node struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			Taints []taint `json:"taints"`
		} `json:"spec"`
	}
	if err := o.do(ctx, http.MethodGet, path, nil, &node); err != nil {
		return err
	}
	is := func(t taint) bool { return t.Key == o.Taint }
	if slices.ContainsFunc(node.Spec.Taints, is) == closed {
		return nil
	}
	taints := slices.DeleteFunc(node.Spec.Taints, is)
	if closed {
		taints = append(taints, taint{Key: o.Taint, Effect: effect})
	}
	// with the version, so that a change by somebody else meanwhile is a conflict
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": node.Metadata.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if err := o.do(ctx, http.MethodPatch, path, patch, nil); err != nil {
		return err
	}
	if closed {
		o.Logf("node %s has the taint %s: its sensor does not enforce", o.Node, o.Taint)
	} else {
		o.Logf("node %s lost the taint %s: its sensor enforces", o.Node, o.Taint)
	}
	return nil
}

func (o *NodeOptions) do(ctx context.Context, method, path string, body []byte, into any) error {
	token, err := os.ReadFile(o.Token)
	if err != nil {
		return fmt.Errorf("read the service account's token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, o.API+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		var status struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(data, &status) // what is no status has no message
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, status.Message)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
