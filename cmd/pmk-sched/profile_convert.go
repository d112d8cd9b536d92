package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func profileConvertCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "carry a scheduler configuration to another config API or release",
		ArgsUsage: "FILE",
		Description: "Reads a KubeSchedulerConfiguration of any config API, or a legacy Policy, JSON or YAML, bare or in a ConfigMap;\n" +
			"FILE - is standard input. Prints the document; what changed is told on standard error, line by line.\n" +
			"What cannot be carried is an error, or a warning with --lossy.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "`TARGET`: a config API such as v1beta3, or a release such as v1.24.3"},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that reads it, if --to names a config API", DefaultText: "the newest that does"},
			&cli.BoolFlag{Name: "lossy", Usage: "leave out what cannot be carried, with a warning for each loss"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in; can be repeated"},
			&cli.StringFlag{Name: "output", Usage: "write the document to `FILE`", DefaultText: "standard output"},
		},
		Action: func(c *cli.Context) error {
			request, err := readConvertRequest(c, u)
			if err != nil {
				return err
			}
			converted, err := profiles.Convert(request)
			if err != nil {
				return err
			}
			tellNotes(u, request.SourceName, converted.Notes)
			if file := c.String("output"); file != "" {
				if err := os.WriteFile(file, converted.YAML, 0o644); err != nil { //nolint:gosec // a configuration is no secret
					return fmt.Errorf("write --output: %w", err)
				}
				return nil
			}
			_, err = u.out.Write(converted.YAML)
			return err
		},
	}
}

// readConvertRequest reads flags and file.
func readConvertRequest(c *cli.Context, u *ui) (profiles.ConvertRequest, error) {
	r := profiles.ConvertRequest{Lossy: c.Bool("lossy"), Plugins: c.StringSlice("plugin")}
	if c.String("to") == "" {
		return r, usagef("name a config API or a release: --to v1beta3, --to v1.24.3", "convert to what?")
	}
	var err error
	if r.API, r.Release, err = profiles.Target(c.String("to")); err != nil {
		return r, err
	}
	if branch := c.String("branch"); branch != "" {
		if r.API == "" {
			return r, usagef("leave --branch out", "--to %s names the release already", c.String("to"))
		}
		if r.Release, err = versions.Parse(branch); err != nil {
			return r, err
		}
	}
	r.Source, r.SourceName, err = readDocument(c, u)
	return r, err
}

// readDocument reads the file that is the only argument; "-" is standard input.
func readDocument(c *cli.Context, u *ui) (text []byte, name string, err error) {
	switch name = c.Args().First(); name {
	case "":
		return nil, "", usagef("name it, or - for standard input", "which file?")
	case "-":
		text, err = io.ReadAll(u.in)
		if err != nil {
			return nil, "", fmt.Errorf("read standard input: %w", err)
		}
		return text, "standard input", nil
	}
	text, err = readFile("configuration", name)
	return text, name, err
}

// tellNotes writes notes by line, and losses as warnings.
func tellNotes(u *ui, name string, notes []profiles.Note) {
	for _, n := range notes {
		where := ""
		if n.Line > 0 {
			where = fmt.Sprintf("%s:%d: ", name, n.Line)
		}
		if n.Loss {
			u.warn("lost: " + where + n.Message)
		} else {
			u.say("note: %s%s", where, n.Message)
		}
	}
}
