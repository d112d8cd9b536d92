package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
)

func TestAskTable(t *testing.T) {
	a := &ask.Answer{
		Fits: ask.No, Scheduler: "packer", Release: "v1.24.3", AgeSeconds: 2.6,
		Pods: []ask.Pod{{Namespace: "shop", Name: "train-1", Node: "a"}, {Namespace: "shop", Name: "train-2",
			Reason: "0/1 nodes are available"}},
		Evicted: []ask.Evicted{{Namespace: "batch", Name: "low", Node: "a"}},
		Changes: []ask.Change{{Kind: "count", Text: "1 instead of 2 pods", Evicts: 1}},
		Notes:   []string{"the cluster has Service shop/web: it is used as it is there"},
		Unknown: []string{"whether webhooks refuse the pods"},
	}
	const want = `no: packer v1.24.3 has a node for 1 of 2 pods
the pods of the cluster as of at most 3 s ago

POD	NODE	REASON
shop/train-1	a	-
shop/train-2	-	0/1 nodes are available

WOULD EVICT	NODE
batch/low	a

ALL PODS FIT WITH	EVICTED
1 instead of 2 pods	1

note: the cluster has Service shop/web: it is used as it is there

not known:
- whether webhooks refuse the pods
`
	if diff := cmp.Diff(want, askTable(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An agent sees the tools, which only read, and gets answers and errors with their hints.
func TestAgentsAskWithTools(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "ask.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var q ask.Question
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil && r.Method == http.MethodPost {
				t.Error(err)
			}
			switch {
			case r.URL.Path == "/v1/status":
				_, _ = io.WriteString(w, `[{"scheduler":"packer"}]`)
			case q.Count == 3:
				_, _ = io.WriteString(w, `{"fits":"yes","scheduler":"packer"}`)
			default:
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"error":"the question is wrong","hint":"ask another one"}`)
			}
		})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	near, far := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tools := askTools(newUI(nil, io.Discard, io.Discard), &ask.Client{Address: "unix:" + socket})
	go func() { _ = tools.Run(ctx, far) }() // until the test ends
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := agent.ListTools(ctx, nil)
	if err != nil || len(list.Tools) != 3 {
		t.Fatalf("%v %v", list, err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("tool %s does not only read", tool.Name)
		}
	}
	for _, tc := range []struct {
		tool, want string
		arguments  map[string]any
	}{
		{"status", `"scheduler":"packer"`, nil},
		{"ask", `"fits":"yes"`, map[string]any{"manifests": "kind: Pod\napiVersion: v1\n", "count": 3}},
		{"ask", "the question is wrong (ask another one)", map[string]any{"manifests": "kind: Pod\napiVersion: v1\n"}},
	} {
		result, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: tc.tool, Arguments: tc.arguments})
		if err != nil {
			t.Errorf("%s: %v", tc.tool, err)
			continue
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		if text == nil || !strings.Contains(text.Text, tc.want) {
			t.Errorf("%s: %+v", tc.tool, text)
		}
	}
}
