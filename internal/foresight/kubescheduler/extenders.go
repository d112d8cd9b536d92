package kubescheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	// nowhere is an address that refuses connections.
	nowhere = "http://127.0.0.1:1/deployed/"
	// askTime bounds the connection to an extender.
	askTime = 5 * time.Second
)

// unreachable returns extenders that a deployment runs in the cluster, with an address that refuses
// connections.
func unreachable(deployed []profiles.Extender) []profiles.Extender {
	var all []profiles.Extender
	for _, e := range deployed {
		e.URLPrefix = nowhere + e.Name
		all = append(all, e)
	}
	return all
}

// calledExtender is an entry in a rendered configuration.
type calledExtender struct {
	URLPrefix, FilterVerb, PrioritizeVerb, PreemptVerb, BindVerb string
	Ignorable                                                    bool
	TLSConfig                                                    struct{ CAFile, CertFile, KeyFile string }
}

// askExtenders connects to each extender once. An extender that cannot be called from here is an
// error, unless it is ignorable: the scheduler then does without it, at an address that refuses
// connections. No extender binds pods: it would bind pods in the cluster. A scheduler in a sandbox
// calls only those that the simulation runs.
func (c *Configuration) askExtenders(ctx context.Context, isolated bool) error {
	var read struct{ Extenders []map[string]any }
	if err := yaml.Unmarshal(c.YAML, &read); err != nil {
		return fmt.Errorf("read the extenders of the configuration: %w", err)
	}
	changed := false
	for _, entry := range read.Extenders {
		e, err := parseExtender(entry)
		if err != nil {
			return err
		}
		called := e.FilterVerb+e.PrioritizeVerb+e.PreemptVerb != ""
		if !called && e.BindVerb == "" {
			continue
		}
		name, reason := e.ask(ctx, called, isolated, c.Services)
		answers := reason == "" || !called
		switch {
		case answers && e.BindVerb == "":
			continue
		case answers:
			c.Notes = append(c.Notes, fmt.Sprintf("extender %s does not bind pods here, because it would bind pods of the "+
				"cluster: the scheduler binds them itself", name))
		case !e.Ignorable:
			hint := "set ignorable: true or remove the extender to simulate without it, or set urlPrefix to an " +
				"address that answers here, such as the address of a pmk-extender on this machine"
			if isolated {
				hint = "name the scheduler with -f pmk-sched.yaml: its plugins then run as you, and call extenders"
			}
			return problem.Errorf(hint, "call extender %s, without which no pod is scheduled (ignorable: false): %s", name, reason)
		default:
			c.Notes = append(c.Notes, fmt.Sprintf("extender %s is not simulated, pods are scheduled without it (ignorable: true): %s",
				name, reason))
			entry["urlPrefix"] = nowhere + url.PathEscape(name)
			delete(entry, "tlsConfig")
			delete(entry, "enableHTTPS")
		}
		delete(entry, "bindVerb")
		changed = true
	}
	if !changed {
		return nil
	}
	return c.Set("extenders", read.Extenders)
}

func parseExtender(entry map[string]any) (e calledExtender, err error) {
	text, err := json.Marshal(entry)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return e, fmt.Errorf("read an extender of the configuration: %w", err)
	}
	return e, nil
}

// ask returns the extender's name, which is its address without a password unless a deployment runs
// it, and the reason why it cannot be called from here, or "". It connects if connect is set.
func (e calledExtender) ask(ctx context.Context, connect, isolated bool, services []string) (name, reason string) {
	if name, deployed := strings.CutPrefix(e.URLPrefix, nowhere); deployed {
		return name, "pmk-sched deploys it into the cluster, where it cannot be called from here"
	}
	address, err := url.Parse(e.URLPrefix)
	if err != nil {
		return "with an invalid urlPrefix", "its address cannot be parsed"
	}
	if isolated && !slices.Contains(services, address.Host) {
		return address.Redacted(), "the cluster recorded the scheduler's plugins, so it runs in a sandbox, from which it " +
			"reaches only the simulated API server"
	}
	for _, file := range []string{e.TLSConfig.CAFile, e.TLSConfig.CertFile, e.TLSConfig.KeyFile} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return address.Redacted(), "its tlsConfig names " + file + ", a file in the scheduler's pod"
		}
	}
	if !connect {
		return address.Redacted(), ""
	}
	port := address.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[address.Scheme == "https"]
	}
	dialer := net.Dialer{Timeout: askTime}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port))
	if err == nil {
		err = connection.Close()
	}
	if err != nil {
		return address.Redacted(), err.Error()
	}
	return address.Redacted(), ""
}
