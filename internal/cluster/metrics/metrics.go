// Package metrics reads a process's metrics in Prometheus' text format.
package metrics

import (
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Set contains one process's metrics by name.
type Set map[string]*dto.MetricFamily

// Parse reads metrics. It ignores the text from the first line on that is not in Prometheus'
// format, or the whole text if the parser panics (prometheus/common#922 is one such text).
func Parse(text string) (set Set) {
	defer func() {
		if recover() != nil {
			set = Set{}
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, _ := parser.TextToMetricFamilies(strings.NewReader(text + "\n"))
	return families
}

// Sum returns the sum of all series in a counter or gauge.
func (s Set) Sum(name string) float64 { return s.SumBy(name, "")[""] }

// SumBy returns the sums of a counter's or gauge's series by label value. The sum of the series
// without the label is at "".
func (s Set) SumBy(name, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, m := range s[name].GetMetric() {
		// A series has one of these types, and the others are 0.
		sums[valuesOf(m, label)] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sums
}

// Histograms returns the sums of a histogram's series by label values, which are joined with a
// slash.
func (s Set) Histograms(name string, labels ...string) map[string]*Histogram {
	all := map[string]*Histogram{}
	if s[name].GetType() != dto.MetricType_HISTOGRAM {
		return all
	}
	for _, m := range s[name].GetMetric() {
		h := m.GetHistogram()
		key := valuesOf(m, labels...)
		if all[key] == nil {
			all[key] = &Histogram{}
		}
		series := &Histogram{
			Sum: h.GetSampleSum(), Count: float64(h.GetSampleCount()) + h.GetSampleCountFloat(), buckets: map[float64]float64{},
		}
		for _, b := range h.GetBucket() {
			series.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount()) + b.GetCumulativeCountFloat()
		}
		all[key].Add(series)
	}
	return all
}

func valuesOf(m *dto.Metric, labels ...string) string {
	values := make([]string, len(labels))
	for _, pair := range m.GetLabel() {
		for i, label := range labels {
			if pair.GetName() == label {
				values[i] = pair.GetValue()
			}
		}
	}
	return strings.Join(values, "/")
}
