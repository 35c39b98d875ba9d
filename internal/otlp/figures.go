package otlp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/types/known/timestamppb"

	"weir/internal/control"
)

// meter sends the sensor's figures under the names that they have in Prometheus, and those of its own registry. Figures that cannot be sent are
// passed over: counts go on.
type meter struct {
	sensor *control.Client
	of     *resource.Resource
	out    *otlpmetrichttp.Exporter
	own    prometheus.Gatherer
}

func (m *meter) send(ctx context.Context) error {
	text, err := m.sensor.Metrics(ctx)
	if err != nil {
		return err
	}
	families, err := families(text)
	if err != nil {
		return err
	}
	own, err := m.own.Gather()
	if err != nil {
		return fmt.Errorf("collect figures: %w", err)
	}
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return append(families, own...), nil })
	scopes, err := bridge.NewMetricProducer(bridge.WithGatherer(all)).Produce(ctx)
	if err == nil {
		err = m.out.Export(ctx, &metricdata.ResourceMetrics{Resource: m.of, ScopeMetrics: scopes})
	}
	if err != nil {
		return fmt.Errorf("send figures: %w", err)
	}
	return nil
}

// families reads the text of a sensor's figures. Its counts begin with the daemon.
func families(text string) ([]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	var began *timestamppb.Timestamp
	if start := found["weir_start_time_seconds"].GetMetric(); len(start) == 1 {
		began = timestamppb.New(time.UnixMilli(int64(start[0].GetGauge().GetValue() * 1e3)))
	}
	var all []*dto.MetricFamily
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, one := range found[name].GetMetric() {
			if c := one.GetCounter(); c != nil {
				c.CreatedTimestamp = began
			}
			if h := one.GetHistogram(); h != nil {
				h.CreatedTimestamp = began
			}
		}
		all = append(all, found[name])
	}
	return all, nil
}
