package replace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// deprecatedFlags returns the flags that kube-scheduler ignores with --config
// (cmd/kube-scheduler/app/options/deprecated.go), and the field that replaces each.
func deprecatedFlags() [][2]string {
	return [][2]string{
		{"kube-api-content-type", "clientConnection.contentType"},
		{"kube-api-qps", "clientConnection.qps"},
		{"kube-api-burst", "clientConnection.burst"},
		{"profiling", "enableProfiling"},
		{"contention-profiling", "enableContentionProfiling"},
		{"leader-elect-lease-duration", "leaderElection.leaseDuration"},
		{"leader-elect-renew-deadline", "leaderElection.renewDeadline"},
		{"leader-elect-retry-period", "leaderElection.retryPeriod"},
	}
}

// convertFlags sets the fields of a configuration that replace flags of a scheduler without
// --config, unless the user's own source sets them. The notes list the flags.
func convertFlags(configuration, source []byte, args []string) ([]byte, []string, error) {
	var doc, own yaml.Node
	if err := yaml.Unmarshal(configuration, &doc); err != nil {
		return nil, nil, fmt.Errorf("read the rendered configuration: %w", err)
	}
	_ = yaml.Unmarshal(source, &own) // it was parsed before; a preset has none
	var notes []string
	for _, c := range deprecatedFlags() {
		value, given := staticpod.Flag(args, c[0])
		path := strings.Split(c[1], ".")
		if !given || has(&own, path) {
			continue
		}
		put(&doc, path, value)
		notes = append(notes, fmt.Sprintf("flag --%s=%s becomes %s: it is ignored with --config", c[0], value, c[1]))
	}
	if len(notes) == 0 {
		return configuration, nil, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, nil, fmt.Errorf("write the configuration: %w", err)
	}
	return out.Bytes(), notes, nil
}

// has reports whether a document has a field.
func has(n *yaml.Node, path []string) bool {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for _, name := range path {
		if n = entry(n, name); n == nil {
			return false
		}
	}
	return true
}

// put sets a field of a document to the value of a flag.
func put(n *yaml.Node, path []string, value string) {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	for i, name := range path {
		next := entry(n, name)
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
		}
		if i == len(path)-1 {
			*next = yaml.Node{Kind: yaml.ScalarNode, Value: value}
		}
		n = next
	}
}

func entry(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// flagsToCheck returns the flags with which the binary checks the configuration. It leaves out the
// flags for files, addresses, servers and the Policy.
func flagsToCheck(args []string) []string {
	excluded := []string{
		"config", "kubeconfig", "master", "authentication-kubeconfig", "authorization-kubeconfig", "bind-address",
		"secure-port", "address", "port",
		"cert-dir", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "client-ca-file",
		"requestheader-client-ca-file",
		"write-config-to", "log-file", "log-dir", policyFlag, policyNamespaceFlag, policyFileFlag, policyLegacyFlag,
	}
	var kept []string
	for _, word := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if strings.HasPrefix(word, "--") && strings.Contains(word, "=") && !slices.Contains(excluded, name) {
			kept = append(kept, word)
		}
	}
	return kept
}
