//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pmk-lab": main})
}

// The scripts contain commands of a user and their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits STATUS PROGRAM ARGUMENT... runs a program that has to end with that status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGUMENT...")
	}
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("%v, want exit status %s", err, args[0])
	}
}

func program() *command.Program { return newProgram(nil, io.Discard, io.Discard) }

func TestReferenceIsTheHelpOfTheCommands(t *testing.T) {
	golden.Equal(t, "../../docs/reference-lab.md", command.Reference(program().App, "pmk-lab"))
}

// Command lines of pmk-lab in the help, README.md and docs/ have flags and arguments that it
// accepts.
func TestCommandsInDocumentsParse(t *testing.T) {
	synopsis := regexp.MustCompile(`COMMAND|\[flags\]| - `)
	for _, path := range []string{"README.md", "docs/lab.md", "docs/airgap.md", "docs/reference-lab.md"} {
		path = filepath.Join("..", "..", path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile("(?m)(?:^ *|`)(pmk-lab [a-z][^`\n|#]*)")
		for _, found := range line.FindAllStringSubmatch(string(text), -1) {
			if synopsis.MatchString(found[1]) {
				continue
			}
			p := program()
			command.EachCommand(p.App, func(_ string, cmd *cli.Command) {
				if len(cmd.Subcommands) == 0 {
					cmd.Action = func(*cli.Context) error { return nil }
				}
			})
			if err := p.Execute(t.Context(), strings.Fields(found[1])); err != nil {
				t.Errorf("%s: %s: %v", path, found[1], err)
			}
		}
	}
}
