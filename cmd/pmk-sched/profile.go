package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func profileCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "profile", Usage: "list presets, and convert or validate scheduler configurations",
		Subcommands: []*cli.Command{profileListCommand(u), profileShowCommand(u), profileConvertCommand(u),
			profileValidateCommand(u)},
	}
}

func profileListCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the presets",
		UsageText: command.Examples("pmk-sched profile list", "pmk-sched profile list -o json"),
		Flags:     []cli.Flag{command.OutputFlag("")},
		Action: func(c *cli.Context) error {
			presets := profiles.Presets()
			var p printer
			for _, preset := range presets {
				p.Row(preset.Name, preset.Description)
			}
			return u.Data(c.String("output"), presets, p.String())
		},
	}
}

func profileShowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "print the configuration of a preset for a release",
		UsageText: command.Examples("pmk-sched profile show binpack", "pmk-sched profile show --branch v1.24.3 -o json spread"),
		ArgsUsage: "PRESET",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the newest"},
			&cli.StringFlag{Name: "name", Value: "my-scheduler", Usage: "`NAME` of the scheduler"},
			command.OutputFlag("", "yaml", "json"),
		},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return problem.Invalidf("see `pmk-sched profile list`", "PRESET is required")
			}
			release, err := presetRelease(c, u)
			if err != nil {
				return err
			}
			rendered, err := deploy.RenderPreset(c.Args().First(), c.String("name"), release)
			if err != nil {
				return err
			}
			return u.document(c.String("output"), "", rendered)
		},
	}
}

// presetRelease returns the release of --branch. A preset depends on the minor release only: a
// minor needs no search for its newest patch.
func presetRelease(c *cli.Context, u *ui) (versions.Release, error) {
	branch := c.String("branch")
	if branch == "" {
		return versions.Releases()[0], nil
	}
	if release, ok := versions.TestedPatch(branch); ok {
		return release, nil
	}
	return pack.ResolveBranch(c.Context, u.Session, branch)
}

func profileConvertCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "convert", ArgsUsage: "FILE", Usage: "convert a scheduler configuration to another config API or release",
		Description: "Reads a KubeSchedulerConfiguration of any config API, or a legacy Policy, as JSON or YAML, bare or " +
			"in a ConfigMap; FILE - is standard input. Prints the document; changes are reported on standard error, with " +
			"their lines. A setting that cannot be converted is an error, or a warning with --lossy.",
		UsageText: command.Examples("pmk-sched profile convert --to v1beta3 config.yaml",
			"pmk-sched profile convert --to v1.24.3 --to-file new.yaml config.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to",
				Usage: "`TARGET`: a config API such as v1beta3, or a release such as v1.24.3 (required)"},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler, if --to is a config API",
				DefaultText: "the newest with that API"},
			&cli.BoolFlag{Name: "lossy", Usage: "drop settings that cannot be converted, with a warning for each"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in"},
			toFileFlag(), command.OutputFlag("to-file", "yaml", "json"),
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
			notes, warnings := profiles.SplitNotes(converted.Notes, request.SourceName)
			for _, text := range notes {
				u.Say("note: %s", text)
			}
			u.Warn(warnings...)
			file := c.String("to-file")
			if err := u.document(c.String("output"), file, converted.YAML); err != nil || file == "" {
				return err
			}
			u.Verdict("wrote "+file, "`pmk-sched check --name my-scheduler --config "+file+"`")
			return nil
		},
	}
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
		if r.Release, err = pack.ResolveBranch(c.Context, u.Session, branch); err != nil {
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
		text, err = io.ReadAll(u.In)
		if err != nil {
			return nil, "", fmt.Errorf("read standard input: %w", err)
		}
		return text, "standard input", nil
	}
	text, err = problem.ReadFile("configuration", file)
	return text, file, err
}

func profileValidateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "validate", ArgsUsage: "FILE", Usage: "check whether a scheduler configuration is valid for a release",
		Description: "Uses the built-in rules for the release, and also the kube-scheduler of the release if one with the " +
			"plugins of the file was built on this machine; both must accept the file. Warns about settings that the " +
			"scheduler accepts and ignores. FILE - is standard input.\n\n" +
			"Exit status: 0 valid; 2 the file cannot be read; 3 not valid for the release.",
		UsageText: command.Examples("pmk-sched profile validate --branch v1.24.3 config.yaml",
			"pmk-sched profile validate --branch v1.25.4 -o json config.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler (required)"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in"},
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if c.String("branch") == "" {
				return problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required")
			}
			release, err := pack.ResolveBranch(c.Context, u.Session, c.String("branch"))
			if err != nil {
				return err
			}
			text, name, err := u.readDocument(c.Args().First())
			if err != nil {
				return err
			}
			v, err := pack.Validate(c.Context, u.Session, profiles.ValidateRequest{
				Release: release, Source: text, SourceName: name, Plugins: c.StringSlice("plugin"),
			})
			if err != nil {
				return err
			}
			u.Warn(v.Warnings...)
			if err := u.Data(c.String("output"), v, validationTable(v)); err != nil || v.Valid {
				return err
			}
			return problem.WithHint(command.CheckFailed("%s", strings.Join(v.Reasons, "\n")), v.Hint)
		},
	}
}

func validationTable(v *pack.Validation) string {
	verdict := "valid"
	if !v.Valid {
		verdict = "not valid"
	}
	return fmt.Sprintf("%s: %s for %s (%s), by %s\n", v.File, verdict, v.Release, v.APIVersion, v.Judge)
}
