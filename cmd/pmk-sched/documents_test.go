package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// Every command line in README.md and docs/ has flags and arguments that the program accepts. The
// generated pages have synopses and parts of command lines.
func TestCommandsInDocumentsParse(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range append(documents, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.ReplaceAll(string(text), "\\\n", "")
		for _, found := range regexp.MustCompile("(?m)(?:^|`)(pmk-sched [a-z][^`\n]*)").FindAllStringSubmatch(whole, -1) {
			line, _, _ := strings.Cut(found[1], " # ")
			if strings.Contains(line, "…") || filepath.Base(path) == "reference.md" {
				continue
			}
			checked++
			if err := parse(t, strings.Fields(ofPipe(line))); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(path), line, err)
			}
		}
	}
	if checked < 40 {
		t.Errorf("found %d command lines", checked)
	}
}

// parse runs a command line without the commands' actions.
func parse(t *testing.T, args []string) error {
	t.Helper()
	u := newUI(strings.NewReader(""), io.Discard, &bytes.Buffer{})
	p := newProgram(u, "pmk-sched")
	p.App.Writer, p.App.ErrWriter = io.Discard, io.Discard
	command.EachCommand(p.App, func(_ string, cmd *cli.Command) {
		group := len(cmd.Subcommands) > 0
		cmd.Action = func(c *cli.Context) error {
			if group && c.Args().Present() {
				return fmt.Errorf("unknown command %s", c.Args().First())
			}
			return nil
		}
	})
	return p.Execute(t.Context(), args)
}
