package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

func askMCPCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "mcp", Usage: "serve the tools ask, explain and status to an agent, over standard input",
		Description: "A server of the Model Context Protocol. Its tools only read: ask and status use the server of " +
			"`pmk-sched ask serve`, explain uses the cluster.",
		UsageText: command.Examples("pmk-sched ask mcp",
			"pmk-sched ask mcp --address https://ask.example.com --token-file token"),
		Flags: askClientFlags(),
		Action: func(c *cli.Context) error {
			client, err := askClient(c)
			if err != nil {
				return err
			}
			return askTools(u, client).Run(c.Context, &mcp.StdioTransport{MaxLineLength: 2 * ask.MostBody})
		},
	}
}

// askInput is the input of the tool ask, explainInput that of explain.
type (
	askInput struct {
		Manifests string `json:"manifests" jsonschema:"manifests in YAML or JSON: Pods, Deployments, StatefulSets, Jobs"`
		Count     int    `json:"count,omitempty" jsonschema:"number of copies, by default 1"`
		Scheduler string `json:"scheduler,omitempty" jsonschema:"name of the scheduler, by default the name in the pods"`
	}
	explainInput struct {
		Pod       string `json:"pod" jsonschema:"name of the pod"`
		Namespace string `json:"namespace,omitempty" jsonschema:"namespace of the pod, by default default"`
	}
)

// askTools returns the server of the tools.
func askTools(u *ui, client *ask.Client) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "pmk-sched", Version: ownVersion()}, nil)
	reads := func(name, description string) *mcp.Tool {
		return &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	}
	mcp.AddTool(server, reads("ask", "Whether pods fit in the cluster now, on which nodes, which pods they would evict, and "+
		"which changes would make them fit. Nothing is created."),
		func(ctx context.Context, _ *mcp.CallToolRequest, in askInput) (*mcp.CallToolResult, any, error) {
			q := ask.Question{Count: in.Count, Scheduler: in.Scheduler}
			if err := readManifests(ctx, &q, []string{files.Stdin}, strings.NewReader(in.Manifests)); err != nil {
				return nil, nil, withHints(err)
			}
			answer, err := client.Ask(ctx, q)
			return toolResult(answer, err)
		})
	mcp.AddTool(server, reads("explain", "Why a pod is pending, or why it runs on its node."),
		func(ctx context.Context, _ *mcp.CallToolRequest, in explainInput) (*mcp.CallToolResult, any, error) {
			namespace := cmp.Or(in.Namespace, u.Namespace, metav1.NamespaceDefault)
			report, err := collect.Explain(ctx, u.Session, namespace, in.Pod)
			return toolResult(report, err)
		})
	mcp.AddTool(server, reads("status", "The schedulers that answer."),
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			status, err := client.Status(ctx)
			return toolResult(status, err)
		})
	return server
}

// toolResult returns a result as JSON.
func toolResult(value any, err error) (*mcp.CallToolResult, any, error) {
	if err != nil {
		return nil, nil, withHints(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, nil, fmt.Errorf("write the result: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}

// withHints returns an error whose text has the hints, which an agent sees.
func withHints(err error) error {
	if hints := problem.Hints(err); len(hints) > 0 {
		return fmt.Errorf("%w (%s)", err, strings.Join(hints, "; "))
	}
	return err
}
