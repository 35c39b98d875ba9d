package otlp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/sync/errgroup"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/policy"
)

const (
	lookEvery = time.Second // at the log
	mostWait  = 30 * time.Second
	callTime  = 20 * time.Second // for one request
)

// Options are what Run needs.
type Options struct {
	Policy policy.OTLP
	Node   string          // what this node is called
	Sensor *control.Client // whose log and figures are carried
	State  string          // directory
	Since  time.Duration   // where the state does not say where events go on: how old they may be; 0: all are sent
	Say    func(string)    // what fails, and that it works again
}

// Run carries until ctx ends. What fails it tells and tries again; what is wrong with the policy's files is an error at once.
func Run(ctx context.Context, o Options) error {
	events, figures, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { event.Again(ctx, o.Say, "events", nil, lookEvery, mostWait, events.carry); return nil })
	if every := time.Duration(o.Policy.MetricsSeconds) * time.Second; every > 0 {
		group.Go(func() error { event.Again(ctx, o.Say, "figures", nil, every, mostWait, figures.send); return nil })
	}
	return errors.Join(group.Wait(), events.store())
}

func prepare(ctx context.Context, o Options) (*events, *meter, error) {
	if o.Policy.Endpoint == "" {
		return nil, nil, control.Errorf(control.Usage, "the policy has no otlp.endpoint: write one such as https://otel.example.org:4318")
	}
	if _, err := headersIn(o.Policy.HeadersFile); err != nil {
		return nil, nil, err
	}
	of, err := resourceOf(ctx, o.Node)
	if err != nil {
		return nil, nil, err
	}
	endpoint := strings.TrimRight(o.Policy.Endpoint, "/")
	logs, err := newDoor(o.Policy)
	if err != nil {
		return nil, nil, err
	}
	sendLogs, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(endpoint+"/v1/logs"), otlploghttp.WithHTTPClient(logs.client()),
		otlploghttp.WithCompression(otlploghttp.GzipCompression), otlploghttp.WithTimeout(callTime), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
	if err != nil {
		return nil, nil, fmt.Errorf("send events: %w", err)
	}
	figures, err := newDoor(o.Policy)
	if err != nil {
		return nil, nil, err
	}
	sendFigures, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(endpoint+"/v1/metrics"), otlpmetrichttp.WithHTTPClient(figures.client()),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression), otlpmetrichttp.WithTimeout(callTime), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	if err != nil {
		return nil, nil, fmt.Errorf("send figures: %w", err)
	}
	own := prometheus.NewRegistry()
	events, err := newEvents(o, of, sendLogs, logs, own)
	return events, &meter{sensor: o.Sensor, of: of, out: sendFigures, own: own}, err
}

// resourceOf says whose events and figures these are; OTEL_RESOURCE_ATTRIBUTES adds to it.
func resourceOf(ctx context.Context, node string) (*resource.Resource, error) {
	all := []attribute.KeyValue{attribute.String("service.name", "weir"), attribute.String("service.instance.id", node), attribute.String("host.name", node)}
	if pod := os.Getenv("NODE_NAME"); pod != "" {
		all = append(all, attribute.String("k8s.node.name", pod))
	}
	r, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(all...))
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}
