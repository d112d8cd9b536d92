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
	// StaleNeutral gives a node without fresh data the mean score of the others.
	StaleNeutral = "Neutral"
	// StaleExclude filters a node without fresh data out, as long as another node has some.
	StaleExclude = "Exclude"
)

// Arguments are what stands under pluginConfig. Durations are strings such as "15s".
type Arguments struct {
	// Prometheus says where the load is read.
	Prometheus Prometheus `json:"prometheus"`
	// Interval is the time from one query to the next, "15s" by default.
	Interval string `json:"interval,omitempty"`
	// StaleAfter is the age at which what was read no longer counts, "1m" by default.
	StaleAfter string `json:"staleAfter,omitempty"`
	// Stale says what becomes of a node without fresh data: Neutral (the default) or Exclude.
	Stale string `json:"stale,omitempty"`
	// Window is the time over which the default CPU query averages, and over which the load promised to a node
	// by a pod gives way to the load that is measured; "2m" by default.
	Window string `json:"window,omitempty"`
	// Metrics are what is read per node; "cpu" and "memory" of node_exporter by default.
	Metrics []Metric `json:"metrics,omitempty"`
	// Promises say what a new pod counts before its load is measured.
	Promises Promises `json:"promises,omitempty"`
}

// Prometheus is a server with the query API of Prometheus.
type Prometheus struct {
	// URL is the address, to which /api/v1/query is added.
	URL string `json:"url"`
	// Timeout is how long one query may take, "5s" by default.
	Timeout string `json:"timeout,omitempty"`
	// MaxBytes is the largest answer that is read, 16 MiB by default.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// BearerTokenFile holds a token that is sent along. It is read anew for every query.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// CAFile holds the authorities that sign the server's certificate; without it and CA, those of the image do.
	CAFile string `json:"caFile,omitempty"`
	// CA is the same as PEM text, in place of a file.
	CA string `json:"ca,omitempty"`
	// CertFile holds a client certificate.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile holds the key of CertFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate, if it is not that in the URL.
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Metric is one kind of load.
type Metric struct {
	// Name is the metric's own, in messages and metrics. For "cpu" and "memory" Query and Resource have defaults.
	Name string `json:"name"`
	// Query is a PromQL expression with one sample per node.
	Query string `json:"query,omitempty"`
	// NodeLabel is the label that names the node: by its name, host name or internal address, with or without a port.
	// "instance" by default.
	NodeLabel string `json:"nodeLabel,omitempty"`
	// Full is the value of a node that is fully loaded, 1 by default.
	Full float64 `json:"full,omitempty"`
	// Weight is the metric's share in the score, 1 by default. With 0 it only filters.
	Weight *int64 `json:"weight,omitempty"`
	// MaxPercent filters out nodes whose load is this or more, in percent of Full. 0 filters none.
	MaxPercent float64 `json:"maxPercent,omitempty"`
	// Resource is the one whose requests are promised load of this metric: cpu, memory, ephemeral-storage or an extended resource.
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// PodPercent is what a new pod is taken to add to a metric without Resource, in percent of Full.
	PodPercent float64 `json:"podPercent,omitempty"`
}

// Promises say what a pod counts that requests nothing.
type Promises struct {
	// Disabled makes the plugin look at measured load only.
	Disabled bool `json:"disabled,omitempty"`
	// CPU is what a pod without a request counts, "100m" by default.
	CPU string `json:"cpu,omitempty"`
	// Memory is what a pod without a request counts, "200Mi" by default.
	Memory string `json:"memory,omitempty"`
}

// settings are Arguments, checked and in the units that the plugin counts in.
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
		Promises: Promises{CPU: "100m", Memory: "200Mi"},
	}}
	if err := args.Decode(&s.Arguments); err != nil {
		return nil, err
	}
	if len(s.Metrics) == 0 {
		s.Metrics = []Metric{{Name: "cpu"}, {Name: "memory"}}
	}
	for _, check := range []func(*settings) error{(*settings).times, (*settings).server, (*settings).promises, (*settings).metrics} {
		if err := check(s); err != nil {
			return nil, err
		}
	}
	if s.Stale != StaleNeutral && s.Stale != StaleExclude {
		return nil, fmt.Errorf("stale: %q is neither %s nor %s", s.Stale, StaleNeutral, StaleExclude)
	}
	return s, nil
}

func (s *settings) times() error {
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
			return fmt.Errorf("%s: %s is not between %s and 24h", d.field, d.text, d.least)
		}
		*d.into = parsed
	}
	if s.staleAfter < s.interval {
		return fmt.Errorf("staleAfter: %s is shorter than the interval of %s: all data would be stale before the next query", s.StaleAfter, s.Interval)
	}
	return nil
}

func (s *settings) server() error {
	p := s.Prometheus
	if p.URL == "" {
		return fmt.Errorf("prometheus.url: is missing, for example http://prometheus.monitoring:9090")
	}
	base, err := url.Parse(p.URL)
	switch {
	case err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https"):
		return fmt.Errorf("prometheus.url: is not an http or https URL with a host")
	case base.User != nil:
		return fmt.Errorf("prometheus.url: holds a user or password, which configurations and logs would show; use bearerTokenFile or certFile")
	case base.RawQuery != "" || base.Fragment != "":
		return fmt.Errorf("prometheus.url: %s has a query or fragment", p.URL)
	case p.MaxBytes < 1<<10 || p.MaxBytes > 1<<30:
		return fmt.Errorf("prometheus.maxBytes: %d is not between 1 KiB and 1 GiB", p.MaxBytes)
	}
	s.base = *base
	s.base.Path = strings.TrimSuffix(base.Path, "/") + "/api/v1/query"
	s.base.RawPath = ""
	for _, file := range []struct{ field, path string }{
		{"bearerTokenFile", p.BearerTokenFile}, {"caFile", p.CAFile}, {"certFile", p.CertFile}, {"keyFile", p.KeyFile},
	} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			return fmt.Errorf("prometheus.%s: %s is not an absolute path", file.field, file.path)
		}
	}
	return p.checkTLS(base)
}

func (p Prometheus) checkTLS(base *url.URL) error {
	usesTLS := p.CAFile != "" || p.CA != "" || p.CertFile != "" || p.KeyFile != "" || p.ServerName != "" || p.InsecureSkipVerify
	switch {
	case base.Scheme == "http" && usesTLS:
		return fmt.Errorf("prometheus.url: is http, and caFile, ca, certFile, keyFile, serverName and insecureSkipVerify are for https")
	case base.Scheme == "http" && p.BearerTokenFile != "" && !loopback(base.Hostname()):
		return fmt.Errorf("prometheus.bearerTokenFile: the token would travel in the clear to an http URL; use https")
	case p.CAFile != "" && p.CA != "":
		return fmt.Errorf("prometheus.ca: is given beside caFile; give one of them")
	case p.InsecureSkipVerify && (p.CAFile != "" || p.CA != ""):
		return fmt.Errorf("prometheus.insecureSkipVerify: is given beside authorities, which it would make useless")
	case (p.CertFile == "") != (p.KeyFile == ""):
		return fmt.Errorf("prometheus.certFile and prometheus.keyFile: one is given without the other")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *settings) promises() error {
	cpu, err := resource.ParseQuantity(s.Promises.CPU)
	if err != nil || cpu.Sign() < 0 {
		return fmt.Errorf(`promises.cpu: %q is not a quantity such as "100m"`, s.Promises.CPU)
	}
	memory, err := resource.ParseQuantity(s.Promises.Memory)
	if err != nil || memory.Sign() < 0 {
		return fmt.Errorf(`promises.memory: %q is not a quantity such as "200Mi"`, s.Promises.Memory)
	}
	s.milliCPU, s.memory = cpu.MilliValue(), memory.Value()
	return nil
}

func (s *settings) metrics() error {
	if len(s.Metrics) > maxMetrics {
		return fmt.Errorf("metrics: %d are more than %d", len(s.Metrics), maxMetrics)
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
			return fmt.Errorf("metrics[%d].name: %q stands there twice", i, m.Name)
		}
		seen[m.Name] = true
		used = used || *m.Weight > 0 || m.MaxPercent > 0
	}
	if !used && s.Stale != StaleExclude {
		return fmt.Errorf("metrics: none has a weight or maxPercent, so the plugin would do nothing")
	}
	return nil
}
