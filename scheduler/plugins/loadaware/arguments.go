package loadaware

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.Stale.
const (
	// StaleNeutral gives a node without fresh data the other nodes' mean score.
	StaleNeutral = "Neutral"
	// StaleExclude rejects a node without fresh data, as long as another node has fresh data.
	StaleExclude = "Exclude"
)

// Arguments are the plugin's arguments in the configuration. Durations are strings such as "15s".
type Arguments struct {
	// Prometheus is the server that is queried for the load.
	Prometheus Prometheus `json:"prometheus"`
	// Interval is the time between queries, "15s" by default.
	Interval string `json:"interval,omitempty"`
	// StaleAfter is the age after which data is ignored, "1m" by default.
	StaleAfter string `json:"staleAfter,omitempty"`
	// Stale is the treatment of nodes without fresh data: Neutral (the default) or Exclude.
	Stale string `json:"stale,omitempty"`
	// Window is the range for the default CPU query, and the time in which a bound pod's expected load
	// decreases to zero. Defaults to "2m".
	Window string `json:"window,omitempty"`
	// Metrics are the metrics for each node, node_exporter's "cpu" and "memory" by default.
	Metrics []Metric `json:"metrics,omitempty"`
	// ExpectedLoad is the load that new pods are expected to add.
	ExpectedLoad ExpectedLoad `json:"expectedLoad,omitempty"`
}

// Prometheus is a server with the query API of Prometheus.
type Prometheus struct {
	// URL is the address, without /api/v1/query.
	URL string `json:"url"`
	// Timeout is a query's timeout, "5s" by default.
	Timeout string `json:"timeout,omitempty"`
	// MaxBytes is the maximum size of a response, 16 MiB by default.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// BearerTokenFile is a file with a bearer token. It is read for every query.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// CAFile is a file with the server's certificate authorities. If it and CA are empty, the image's
	// authorities are used.
	CAFile string `json:"caFile,omitempty"`
	// CA is the certificate authorities in PEM format, instead of CAFile.
	CA string `json:"ca,omitempty"`
	// CertFile is a file with a client certificate.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile is a file with the key of CertFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate, the URL's host by default.
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Metric is one kind of load.
type Metric struct {
	// Name is the name in messages and metrics. For "cpu" and "memory", Query and Resource have
	// defaults.
	Name string `json:"name"`
	// Query is a PromQL expression with one sample per node.
	Query string `json:"query,omitempty"`
	// NodeLabel is the label with the node's name, host name or internal address, with or without a
	// port; "instance" by default.
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Full is the value of a fully loaded node, 1 by default.
	Full float64 `json:"full,omitempty"`
	// Weight is the weight of the metric in the score, 1 by default. With 0 the metric only filters.
	Weight *int64 `json:"weight,omitempty"`
	// MaxPercent rejects nodes whose load is this or more, in percent of Full. 0 means no limit.
	MaxPercent float64 `json:"maxPercent,omitempty"`
	// Resource is the resource whose requests are a pod's expected load: cpu, memory,
	// ephemeral-storage or an extended resource.
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// PodPercent is a pod's expected load for a metric without Resource, in percent of Full.
	PodPercent float64 `json:"podPercent,omitempty"`
}

// ExpectedLoad configures the expected load of pods that is not measured yet.
type ExpectedLoad struct {
	// Disabled makes the plugin use only the measured load.
	Disabled bool `json:"disabled,omitempty"`
	// CPU is the expected load of a pod without a CPU request, "100m" by default.
	CPU string `json:"cpu,omitempty"`
	// Memory is the expected load of a pod without a memory request, "200Mi" by default.
	Memory string `json:"memory,omitempty"`
}

type settings struct {
	Arguments
	base                                  url.URL
	timeout, interval, staleAfter, window time.Duration
	milliCPU, memory                      int64
}

const (
	defaultMaxBytes = 16 << 20
	maxMetrics      = 16
	maxWeight       = 100
	maxPercent      = 1000
)

func decode(args scheduler.Arguments) (*settings, error) {
	s := &settings{Arguments: Arguments{
		Prometheus: Prometheus{Timeout: "5s", MaxBytes: defaultMaxBytes},
		Interval:   "15s", StaleAfter: "1m", Stale: StaleNeutral, Window: "2m",
		ExpectedLoad: ExpectedLoad{CPU: "100m", Memory: "200Mi"},
	}}
	if err := args.Decode(&s.Arguments); err != nil {
		return nil, err
	}
	if len(s.Metrics) == 0 {
		s.Metrics = []Metric{{Name: "cpu"}, {Name: "memory"}}
	}
	for _, parse := range []func() error{s.parseDurations, s.parseServer, s.parseExpectedLoad, s.completeMetrics} {
		if err := parse(); err != nil {
			return nil, err
		}
	}
	if s.Stale != StaleNeutral && s.Stale != StaleExclude {
		return nil, fmt.Errorf("stale: %q is neither %s nor %s", s.Stale, StaleNeutral, StaleExclude)
	}
	return s, nil
}

func (s *settings) parseDurations() error {
	for _, d := range []struct {
		field, text string
		least       time.Duration
		into        *time.Duration
	}{
		{"prometheus.timeout", s.Prometheus.Timeout, 10 * time.Millisecond, &s.timeout},
		{"interval", s.Interval, 100 * time.Millisecond, &s.interval},
		{"staleAfter", s.StaleAfter, 100 * time.Millisecond, &s.staleAfter},
		{"window", s.Window, time.Second, &s.window},
	} {
		parsed, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf(`%s: %q is not a duration such as "15s"`, d.field, d.text)
		}
		if parsed < d.least || parsed > 24*time.Hour {
			return fmt.Errorf("%s: %s must be between %s and 24h", d.field, d.text, d.least)
		}
		*d.into = parsed
	}
	if s.staleAfter < s.interval {
		return fmt.Errorf(
			"staleAfter: %s must not be shorter than the interval of %s, or all data is stale before the next query",
			s.StaleAfter, s.Interval)
	}
	return nil
}

func (s *settings) parseServer() error {
	p := s.Prometheus
	if p.URL == "" {
		return fmt.Errorf("prometheus.url: is required, for example http://prometheus.monitoring:9090")
	}
	base, err := url.Parse(p.URL)
	switch {
	case err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https"):
		return fmt.Errorf("prometheus.url: must be an http or https URL with a host")
	case base.User != nil:
		return fmt.Errorf(
			"prometheus.url: must not have a user or password, which configurations and logs would show; use bearerTokenFile " +
				"or certFile")
	case base.RawQuery != "" || base.Fragment != "":
		return fmt.Errorf("prometheus.url: %s must not have a query or fragment", p.URL)
	case p.MaxBytes < 1<<10 || p.MaxBytes > 1<<30:
		return fmt.Errorf("prometheus.maxBytes: %d must be between 1 KiB and 1 GiB", p.MaxBytes)
	}
	s.base = *base
	s.base.Path = strings.TrimSuffix(base.Path, "/") + "/api/v1/query"
	s.base.RawPath = ""
	for _, file := range []struct{ field, path string }{
		{"bearerTokenFile", p.BearerTokenFile}, {"caFile", p.CAFile}, {"certFile", p.CertFile}, {"keyFile", p.KeyFile},
	} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			return fmt.Errorf("prometheus.%s: %s must be an absolute path", file.field, file.path)
		}
	}
	return p.checkTLS(base)
}

func (p Prometheus) checkTLS(base *url.URL) error {
	usesTLS := p.CAFile != "" || p.CA != "" || p.CertFile != "" || p.KeyFile != "" || p.ServerName != "" ||
		p.InsecureSkipVerify
	switch {
	case base.Scheme == "http" && usesTLS:
		return fmt.Errorf(
			"prometheus.url: caFile, ca, certFile, keyFile, serverName and insecureSkipVerify need an https URL")
	case base.Scheme == "http" && p.BearerTokenFile != "" && !loopback(base.Hostname()):
		return fmt.Errorf(
			"prometheus.bearerTokenFile: must not be used with an http URL, which sends the token unencrypted; use https")
	case p.CAFile != "" && p.CA != "":
		return fmt.Errorf("prometheus.ca: must not be set together with caFile")
	case p.InsecureSkipVerify && (p.CAFile != "" || p.CA != ""):
		return fmt.Errorf("prometheus.insecureSkipVerify: must not be set together with ca or caFile")
	case (p.CertFile == "") != (p.KeyFile == ""):
		return fmt.Errorf("prometheus.certFile and prometheus.keyFile: must be set together")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *settings) parseExpectedLoad() error {
	cpu, err := resource.ParseQuantity(s.ExpectedLoad.CPU)
	if err != nil || cpu.Sign() < 0 {
		return fmt.Errorf(`expectedLoad.cpu: %q is not a quantity such as "100m"`, s.ExpectedLoad.CPU)
	}
	memory, err := resource.ParseQuantity(s.ExpectedLoad.Memory)
	if err != nil || memory.Sign() < 0 {
		return fmt.Errorf(`expectedLoad.memory: %q is not a quantity such as "200Mi"`, s.ExpectedLoad.Memory)
	}
	s.milliCPU, s.memory = cpu.MilliValue(), memory.Value()
	return nil
}

func (s *settings) completeMetrics() error {
	if len(s.Metrics) > maxMetrics {
		return fmt.Errorf("metrics: %d metrics, at most %d are allowed", len(s.Metrics), maxMetrics)
	}
	used := false
	seen := map[string]bool{}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		m.complete(s.window)
		if field, problem := m.check(); problem != "" {
			return fmt.Errorf("metrics[%d].%s: %s", i, field, problem)
		}
		if seen[m.Name] {
			return fmt.Errorf("metrics[%d].name: duplicate %q", i, m.Name)
		}
		seen[m.Name] = true
		used = used || *m.Weight > 0 || m.MaxPercent > 0
	}
	if !used && s.Stale != StaleExclude {
		return fmt.Errorf("metrics: at least one must have a weight or maxPercent")
	}
	return nil
}

// filtersBy reports whether Filter rejects nodes because of a metric.
func (s *settings) filtersBy(m Metric) bool { return m.MaxPercent > 0 || s.Stale == StaleExclude }
