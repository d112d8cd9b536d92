package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func profileConvertCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "convert", ArgsUsage: "FILE", Usage: "convert a scheduler configuration to another config API or release",
		Description: "Reads a KubeSchedulerConfiguration of any config API, or a legacy Policy, as JSON or YAML, bare or " +
			"in a ConfigMap; FILE - is standard input. Prints the document; changes are reported on standard error, with " +
			"their lines. A setting that cannot be converted is an error, or a warning with --lossy.",
		UsageText: examples("pmk-sched profile convert --to v1beta3 config.yaml",
			"pmk-sched profile convert --to v1.24.3 --to-file new.yaml config.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "`TARGET`: a config API such as v1beta3, or a release such as v1.24.3 (required)"},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler, if --to is a config API", DefaultText: "the newest with that API"},
			&cli.BoolFlag{Name: "lossy", Usage: "drop settings that cannot be converted, with a warning for each"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in"},
			toFileFlag(), outputFlag("to-file", "yaml", "json"),
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
			printNotes(u, request.SourceName, converted.Notes)
			return u.document(c.String("output"), c.String("to-file"), converted.YAML)
		},
	}
}

// document writes a YAML document in a format, to a file if one is given.
func (u *ui) document(format, file string, text []byte) error {
	if format == "json" {
		compact, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, compact, "", "  "); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		text = append(out.Bytes(), '\n')
	}
	if file == "" {
		_, err := u.out.Write(text)
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a configuration is not secret
		return fmt.Errorf("write --to-file: %w", err)
	}
	return nil
}

func readConvertRequest(c *cli.Context, u *ui) (profiles.ConvertRequest, error) {
	r := profiles.ConvertRequest{Lossy: c.Bool("lossy"), Plugins: c.StringSlice("plugin")}
	if c.String("to") == "" {
		return r, problem.Invalidf("specify a config API or a release: --to v1beta3, --to v1.24.3", "--to is required")
	}
	var err error
	if r.API, r.Release, err = profiles.Target(c.String("to")); err != nil {
		return r, err
	}
	if branch := c.String("branch"); branch != "" {
		if r.API == "" {
			return r, problem.Invalidf("leave --branch out", "--to %s is a release already", c.String("to"))
		}
		if r.Release, err = pack.ResolveBranch(c.Context, u.session, branch); err != nil {
			return r, err
		}
	}
	r.Source, r.SourceName, err = u.readDocument(c.Args().First())
	return r, err
}

// readDocument reads a file; "-" is standard input.
func (u *ui) readDocument(file string) (text []byte, name string, err error) {
	switch file {
	case "":
		return nil, "", problem.Invalidf("FILE may be - for standard input", "FILE is required")
	case "-":
		text, err = io.ReadAll(u.in)
		if err != nil {
			return nil, "", fmt.Errorf("read standard input: %w", err)
		}
		return text, "standard input", nil
	}
	text, err = problem.ReadFile("configuration", file)
	return text, file, err
}

func printNotes(u *ui, name string, notes []profiles.Note) {
	plain, warnings := profiles.SplitNotes(notes, name)
	for _, text := range plain {
		u.say("note: %s", text)
	}
	u.warn(warnings...)
}
