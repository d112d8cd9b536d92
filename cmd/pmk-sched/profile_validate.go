package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// judgement is what `profile validate` found.
type judgement struct {
	File       string `json:"file"`
	Release    string `json:"release"`
	APIVersion string `json:"apiVersion"`
	Valid      bool   `json:"valid"`
	// By says who judged: byBinary or byKnowledge; Judge names it.
	By    string `json:"by"`
	Judge string `json:"judge"`
	// Reasons are why it is not valid.
	Reasons []string `json:"reasons,omitempty"`
}

const (
	byBinary    = "binary"
	byKnowledge = "knowledge"
)

func profileValidateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "tell whether a release takes a scheduler configuration",
		ArgsUsage: "FILE",
		Description: "Asks the kube-scheduler of that release, if one was built on this machine and has the plugins that the file names;\n" +
			"else judges by what pmk-sched knows of the release, and says so. FILE - is standard input.\n" +
			"Exit status: 0 valid; 2 the file cannot be read; 3 not valid for that release.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that is to read it"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in; can be repeated"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.String("branch") == "" {
				return usagef("name it with --branch v1.24.3, say", "valid for which release?")
			}
			release, err := versions.Parse(c.String("branch"))
			if err != nil {
				return err
			}
			text, name, err := readDocument(c, u)
			if err != nil {
				return err
			}
			plugins := c.StringSlice("plugin")
			v, err := profiles.Validate(profiles.ValidateRequest{Release: release, Source: text, SourceName: name, Plugins: plugins})
			if err != nil {
				return err
			}
			j, err := judge(c, u, name, release, v, plugins)
			if err != nil {
				return err
			}
			return tellJudgement(u, c.String("o"), j, v)
		},
	}
}

// judge asks the release's own binary where there is one, and falls back on v,
// what is known without it.
func judge(c *cli.Context, u *ui, name string, release versions.Release, v *profiles.Validation, plugins []string) (*judgement, error) {
	j := &judgement{File: name, Release: release.String(), APIVersion: v.APIVersion, Valid: v.Valid(), By: byKnowledge}
	for _, p := range v.Problems {
		j.Reasons = append(j.Reasons, (&profiles.Error{Name: name, Problems: []profiles.Problem{p}}).Error())
	}
	binary, why, err := releaseBinary(c, release, v, plugins)
	if err != nil {
		return nil, err
	}
	j.Judge = "what pmk-sched knows of " + release.String() + ": " + why
	if binary.Path == "" {
		return j, nil
	}
	refused, err := askBinary(c.Context, binary, v)
	if errors.Is(err, configcheck.ErrNoBinary) {
		u.warn(err.Error())
		return j, nil
	}
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		u.warn(err.Error())
		err = nil
	}
	if err != nil {
		return nil, err
	}
	j.By, j.Judge, j.Valid = byBinary, binary.Origin, refused == ""
	if j.Valid {
		j.Reasons = nil
	} else {
		j.Reasons = append([]string{refused}, j.Reasons...)
	}
	return j, nil
}

// releaseBinary finds a kube-scheduler of the release in the build's cache that
// has the plugins of the document; why says why there is none.
func releaseBinary(c *cli.Context, release versions.Release, v *profiles.Validation, plugins []string) (binary configcheck.Binary, why string, err error) {
	if v.Kind != "KubeSchedulerConfiguration" {
		return binary, "its own kube-scheduler is asked about a KubeSchedulerConfiguration only", nil
	}
	cache, err := cacheDir(c)
	if err != nil {
		return binary, "", err
	}
	built := build.FindByRelease(cache, release.String(), build.KubeScheduler, build.Host())
	if len(built) == 0 {
		return binary, "no kube-scheduler of it was built on this machine", nil
	}
	i := slices.IndexFunc(built, func(r *build.Result) bool { return hasPlugins(r, slices.Concat(v.Plugins, plugins)) })
	switch {
	case i < 0 && len(plugins) > 0:
		return binary, "no kube-scheduler of it was built here with " + strings.Join(plugins, ", "), nil
	case i < 0:
		i = 0 // it refuses the plugin that it does not have, and says so
	}
	return configcheck.Binary{Path: built[i].Binaries[0].Path, Origin: "the kube-scheduler " + release.String() + " that was built on this machine"}, "", nil
}

func hasPlugins(r *build.Result, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool {
		return !slices.ContainsFunc(r.Info.Plugins, func(p plugins.Info) bool { return p.Name == name })
	})
}

// askBinary returns why the binary refuses the document; empty: it does not.
func askBinary(ctx context.Context, binary configcheck.Binary, v *profiles.Validation) (refused string, err error) {
	dir, err := os.MkdirTemp("", "pmk-sched-validate-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const standIn = "/nowhere/kubeconfig-of-the-document"
	text, err := v.Standalone(standIn)
	if err != nil {
		return "", err
	}
	err = configcheck.Check(ctx, binary, dir, text, standIn, nil)
	var refusal *configcheck.RefusedError
	if errors.As(err, &refusal) {
		return refusal.Reason, nil
	}
	return "", err
}

// tellJudgement writes what was found; a file that is not valid is a finding.
func tellJudgement(u *ui, format string, j *judgement, v *profiles.Validation) error {
	err := u.data(format, j, func(w io.Writer) error {
		verdict := "valid"
		if !j.Valid {
			verdict = "not valid"
		}
		_, err := fmt.Fprintf(w, "%s: %s for %s (%s), by %s\n", j.File, verdict, j.Release, j.APIVersion, j.Judge)
		return err
	})
	if err != nil || j.Valid {
		return err
	}
	return &refusedError{reasons: j.Reasons, try: (&profiles.Error{Problems: v.Problems}).Hint()}
}

// refusedError says why a release refuses a configuration.
type refusedError struct {
	reasons []string
	try     string
}

func (e *refusedError) Error() string     { return strings.Join(e.reasons, "\n") }
func (e *refusedError) CheckFailed() bool { return true }
func (e *refusedError) Hint() string      { return e.try }
