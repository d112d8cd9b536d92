package replace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

// carried are the flags of kube-scheduler that it does not read beside --config
// (cmd/kube-scheduler/app/options/deprecated.go), and the field that says the same.
func carried() [][2]string {
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

// carryFlags writes what a scheduler without --config was told by flags into the
// configuration that it is given now, unless the person's own source says something
// of the same. Each is told in a note.
func carryFlags(configuration, source []byte, words []string) ([]byte, []string, error) {
	var doc, own yaml.Node
	if err := yaml.Unmarshal(configuration, &doc); err != nil {
		return nil, nil, fmt.Errorf("read the rendered configuration: %w", err)
	}
	_ = yaml.Unmarshal(source, &own) // it was read before; a preset has none
	var notes []string
	for _, c := range carried() {
		value, given := staticpod.Flag(words, c[0])
		path := strings.Split(c[1], ".")
		if !given || has(&own, path) {
			continue
		}
		put(&doc, path, value)
		notes = append(notes, fmt.Sprintf("the flag --%s=%s, which is not read beside --config, becomes %s", c[0], value, c[1]))
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

// put sets a field of a document to a value as it stands in a flag.
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

// flagsToCheck are the flags that go with the configuration when the binary checks
// it: those that name no file, no address and no server.
func flagsToCheck(words []string) []string {
	elsewhere := []string{
		"config", "kubeconfig", "master", "authentication-kubeconfig", "authorization-kubeconfig", "bind-address", "secure-port", "address", "port",
		"cert-dir", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "client-ca-file", "requestheader-client-ca-file",
		"write-config-to", "log-file", "log-dir", policyFlag, policyNamespaceFlag, policyFileFlag, policyLegacyFlag,
	}
	var kept []string
	for _, word := range words {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if strings.HasPrefix(word, "--") && strings.Contains(word, "=") && !slices.Contains(elsewhere, name) {
			kept = append(kept, word)
		}
	}
	return kept
}
