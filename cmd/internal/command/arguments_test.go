package command

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestFlagsMayComeAfterArguments(t *testing.T) {
	get := &cli.Command{Name: "get", ArgsUsage: "NAME", Flags: []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}}, &cli.BoolFlag{Name: "watch"}}}
	p := &Program{App: &cli.App{
		Flags: []cli.Flag{&cli.StringFlag{Name: "context"}},
		Commands: []*cli.Command{
			{Name: "lab", Subcommands: []*cli.Command{get}},
			{Name: "exec", ArgsUsage: "-- COMMAND ..."},
		},
	}}
	for line, want := range map[string]string{
		"lab get a":                            "lab get a",
		"lab get a -o json b":                  "lab get -o json a b",
		"--context get lab get a --watch b":    "--context get lab get --watch a b",
		"lab get a --output=json":              "lab get --output=json a",
		"lab get a -o":                         "lab get -o a",
		"lab get - --watch":                    "lab get --watch -",
		"lab get a --unknown b":                "lab get --unknown a b",
		"lab get a --watch -- -o":              "lab get --watch -- a -o",
		"lab get -- a --watch":                 "lab get -- a --watch",
		"lab get a -o -- --watch":              "lab get -o -- --watch a",
		"lab get a b --help c":                 "lab get --help",
		"exec kubectl get pods -n x --context": "exec kubectl get pods -n x --context",
		"nothing a --context b":                "nothing a --context b",
	} {
		got := p.flagsFirst(strings.Fields("program " + line))
		if text := strings.Join(got[1:], " "); text != want {
			t.Errorf("%s: got %s, want %s", line, text, want)
		}
	}
}
