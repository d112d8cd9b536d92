//go:build linux

package ask

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// answersAgents calls each tool of `ask mcp`, as an agent does that has started the program.
func answersAgents(t *testing.T, p *controlplane.Plane, s *server) {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), run.Program(t), "--kubeconfig", p.Kubeconfig, "ask", "mcp", "--address",
		"unix:"+s.socket)
	var stderr run.Output
	cmd.Stderr = &stderr
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	defer agent.Close()
	for _, tc := range []struct {
		tool      string
		arguments map[string]any
		want      []string
	}{
		{"status", nil, []string{`"scheduler":"default-scheduler"`}},
		{"ask", map[string]any{"manifests": job("agent", "500m", "200Mi", 2, "")}, []string{`"fits":"yes"`, `"node":"`}},
		{"explain", map[string]any{"pod": "web-0", "namespace": space}, []string{`"state":"scheduled"`, `"node":"node-0"`}},
		{"explain", map[string]any{"pod": "lost", "namespace": space}, []string{"pod lost does not exist in namespace shop"}},
		{"ask", map[string]any{"manifests": "kind: Service\napiVersion: v1\nmetadata: {name: s}\n"},
			[]string{"no pod to add"}},
	} {
		result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.arguments})
		if err != nil {
			t.Errorf("%s: %v\n%s", tc.tool, err, stderr.String())
			continue
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		for _, want := range tc.want {
			if text == nil || !strings.Contains(text.Text, want) {
				t.Errorf("%s %v: %+v, want %s", tc.tool, tc.arguments, text, want)
			}
		}
	}
}
