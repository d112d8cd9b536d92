package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

func askCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "ask", Usage: "ask whether pods fit now, where, and what would make them fit",
		Description: "Asks the server of `pmk-sched ask serve`, which keeps the scheduler running and shows it the live " +
			"cluster. Pods, Deployments, ReplicaSets, StatefulSets and Jobs are made into pods as in `simulate add`. " +
			"Exit status 3: they do not fit.",
		UsageText: command.Examples("pmk-sched ask -m job.yaml",
			"pmk-sched ask -m deployment.yaml --count 5 -o json",
			"pmk-sched ask -m job.yaml --address https://ask.example.com --token-file token"),
		Flags: append(askClientFlags(),
			&cli.StringSliceFlag{
				Name: "manifests", Aliases: []string{"m", "f"},
				Usage: "ask about the pods of manifests at `PATH`: a file, a directory, or - for standard input",
			},
			&cli.IntFlag{Name: "count", Value: 1, Usage: "`NUMBER` of copies", Action: atLeast("count", 1)},
			&cli.StringFlag{Name: "scheduler", Usage: "`NAME` of the scheduler", DefaultText: "the name in the pods"},
			command.OutputFlag(""),
		),
		Action:      func(c *cli.Context) error { return runAsk(c, u) },
		Subcommands: []*cli.Command{askServeCommand(u), askMCPCommand(u)},
	}
}

// askClientFlags describe a server to ask.
func askClientFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "address", Usage: "`ADDRESS` of the server: https://HOST:PORT or unix:PATH",
			DefaultText: "the socket of the user"},
		&cli.StringFlag{Name: "token-file", Usage: "`FILE` with the token of the server"},
		&cli.StringFlag{Name: "certificate-authority", Usage: "`FILE` with the authority of the server's certificate",
			DefaultText: "the system's"},
	}
}

// askClient returns the client for the flags.
func askClient(c *cli.Context) (*ask.Client, error) {
	client := &ask.Client{Address: c.String("address")}
	if client.Address == "" {
		path, err := askSocket()
		if err != nil {
			return nil, err
		}
		client.Address = ask.SocketPrefix + path
	}
	if name := c.String("token-file"); name != "" {
		token, err := problem.ReadFile("token", name)
		if err != nil {
			return nil, err
		}
		client.Token = strings.TrimSpace(string(token))
	}
	if name := c.String("certificate-authority"); name != "" {
		authority, err := problem.ReadFile("certificate authority", name)
		if err != nil {
			return nil, err
		}
		client.CA = authority
	}
	return client, nil
}

// askSocket returns the path of the user's socket.
func askSocket() (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", problem.Errorf("set --address and --listen", "find the socket of the user: %w", err)
		}
		dir = filepath.Join(cache, "pmk-sched")
	}
	return filepath.Join(dir, "pmk-sched-ask.sock"), nil
}

func runAsk(c *cli.Context, u *ui) error {
	if c.NArg() > 0 {
		return problem.Invalidf(command.SeeHelp(c), "unexpected argument %q", c.Args().First())
	}
	paths := c.StringSlice("manifests")
	if len(paths) == 0 {
		return problem.Invalidf(command.SeeHelp(c), "--manifests is required")
	}
	client, err := askClient(c)
	if err != nil {
		return err
	}
	q := ask.Question{Count: c.Int("count"), Scheduler: c.String("scheduler")}
	if err := readManifests(c.Context, &q, paths, u.In); err != nil {
		return err
	}
	answer, err := client.Ask(c.Context, q)
	if err != nil {
		return err
	}
	if err := u.Data(c.String("output"), answer, askTable(answer)); err != nil {
		return err
	}
	if answer.Fits != ask.Yes {
		return &command.ExitError{Status: command.StatusCheckFailed}
	}
	return nil
}

// readManifests adds the manifests at paths to a question.
func readManifests(ctx context.Context, q *ask.Question, paths []string, stdin io.Reader) error {
	_, err := files.Manifests(ctx, paths, stdin, func(o map[string]any) error {
		q.Manifests = append(q.Manifests, o)
		return nil
	})
	return err
}

// askTable returns an answer for a terminal.
func askTable(a *ask.Answer) string {
	var p printer
	placed := 0
	for _, pod := range a.Pods {
		if pod.Node != "" {
			placed++
		}
	}
	verdict := map[string]string{ask.Yes: "yes", ask.No: "no", ask.Unknown: "not known"}[a.Fits]
	p.Line("%s: %s %s has a node for %d of %s", verdict, a.Scheduler, a.Release, placed,
		plural.Count(len(a.Pods), "pod"))
	p.Line("the pods of the cluster as of at most %.0f s ago", a.AgeSeconds)
	p.Head(len(a.Pods), "POD", "NODE", "REASON")
	for _, pod := range first(a.Pods) {
		p.Row(pod.Namespace+"/"+pod.Name, orDash(pod.Node), orDash(oneLine(pod.Reason)))
	}
	p.more(len(a.Pods))
	p.Head(len(a.Evicted), "WOULD EVICT", "NODE")
	for _, e := range first(a.Evicted) {
		p.Row(e.Namespace+"/"+e.Name, e.Node)
	}
	p.more(len(a.Evicted))
	p.Head(len(a.Changes), "ALL PODS FIT WITH", "EVICTED")
	for _, change := range a.Changes {
		p.Row(change.Text, fmt.Sprint(change.Evicts))
	}
	p.notes(a.Notes)
	p.unknown(a.Unknown)
	return p.String()
}
