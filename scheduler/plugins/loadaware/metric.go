package loadaware

import (
	"fmt"
	"math"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	metricName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// complete sets defaults. The default queries return one sample per node even if several jobs
// scrape it.
func (m *Metric) complete(window time.Duration) {
	if m.NodeLabel == "" {
		m.NodeLabel = "instance"
	}
	if m.Full == 0 {
		m.Full = 1
	}
	if m.Weight == nil {
		one := int64(1)
		m.Weight = &one
	}
	if m.Query != "" {
		return
	}
	switch m.Name {
	case "cpu":
		m.Query = fmt.Sprintf(`1 - avg by (%s) (rate(node_cpu_seconds_total{mode="idle"}[%ds]))`, m.NodeLabel,
			int64(window.Seconds()))
	case "memory":
		m.Query = fmt.Sprintf(
			`1 - min by (%[1]s) (node_memory_MemAvailable_bytes) / max by (%[1]s) (node_memory_MemTotal_bytes)`, m.NodeLabel)
	default:
		return
	}
	if m.Resource == "" && m.PodPercent == 0 {
		m.Resource = corev1.ResourceName(m.Name)
	}
}

func (m *Metric) check() (field, problem string) {
	switch {
	case !metricName.MatchString(m.Name):
		return "name", fmt.Sprintf("%q must consist of lower case letters, digits, - and _, and start with a letter", m.Name)
	case m.Query == "":
		return "query", "is required; only cpu and memory have a default"
	case !labelName.MatchString(m.NodeLabel):
		return "nodeLabel", fmt.Sprintf("%q is not a label name", m.NodeLabel)
	case m.Full <= 0 || math.IsInf(m.Full, 0):
		return "full", fmt.Sprintf("%v must be greater than 0", m.Full)
	case *m.Weight < 0 || *m.Weight > maxWeight:
		return "weight", fmt.Sprintf("%d must be between 0 and %d", *m.Weight, maxWeight)
	case m.MaxPercent < 0 || m.MaxPercent > maxPercent:
		return "maxPercent", fmt.Sprintf("%v must be between 0 and %d", m.MaxPercent, maxPercent)
	case m.PodPercent < 0 || m.PodPercent > 100:
		return "podPercent", fmt.Sprintf("%v must be between 0 and 100", m.PodPercent)
	case m.Resource != "" && m.PodPercent != 0:
		return "podPercent", "must not be set together with resource"
	case m.Resource != "" && len(validation.IsQualifiedName(string(m.Resource))) > 0:
		return "resource", fmt.Sprintf("%q is not a resource name", m.Resource)
	}
	return "", ""
}
