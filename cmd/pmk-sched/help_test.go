package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

func TestHelpFitsInTheTerminalAndHasExamples(t *testing.T) {
	app := newProgram(newUI(nil, nil, nil), "pmk-sched").App
	check := func(name, help string) {
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > command.HelpWidth {
				t.Errorf("%s: line longer than %d columns: %s", name, command.HelpWidth, line)
			}
			if strings.Count(line, "can be repeated") > 1 {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	check(app.Name, command.AppHelp(app))
	check("without arguments", command.StartHelp(app, start()))
	command.EachCommand(app, func(name string, cmd *cli.Command) {
		check(name, command.HelpOf(app, name, cmd))
		if n := strings.Count(cmd.UsageText, "\n") + 1; len(cmd.Subcommands) == 0 && (n < 2 || n > 3) {
			t.Errorf("%s has %d examples", name, n)
		}
	})
}

// The help lists the commands in groups, in this order: every command in one of them, except for
// completion and version.
func TestHelpGroupsTheCommands(t *testing.T) {
	want := []string{
		"install: detect check render diff deploy rollout migrate verify uninstall replace restore extender",
		"look after: status history rollback upgrade credentials explain logs sysdump fleet controller",
		"foresee: snapshot record simulate test tune shadow ask bench",
		"build: build verify-image bundle plugin profile schema",
		"try: lab",
		": completion version",
	}
	app := newProgram(newUI(nil, nil, nil), "pmk-sched").App
	_, help, _ := strings.Cut(command.AppHelp(app), "\nCOMMANDS:\n")
	help, _, _ = strings.Cut(help, "\nGLOBAL FLAGS:\n")
	var got []string
	for section := range strings.SplitSeq(strings.TrimRight(help, "\n"), "\n\n") {
		line := ":"
		for entry := range strings.Lines(section) {
			if name, ok := strings.CutPrefix(entry, "    "); ok {
				line += " " + strings.Fields(name)[0]
			} else {
				line = strings.TrimSpace(entry)
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands in the help (-want +got):\n%s", diff)
	}
	for _, cmd := range app.Commands {
		if (cmd.Category == "") != (cmd.Hidden || slices.Contains([]string{"completion", "version", "help"}, cmd.Name)) {
			t.Errorf("%s is in the group %q", cmd.Name, cmd.Category)
		}
	}
}

// Without arguments, pmk-sched prints five command lines and the names of all commands.
func TestStartHelpFitsOnAScreen(t *testing.T) {
	app := newProgram(newUI(nil, nil, nil), "pmk-sched").App
	help := command.StartHelp(app, start())
	if lines := strings.Count(help, "\n"); lines > 20 {
		t.Errorf("%d lines:\n%s", lines, help)
	}
	for _, s := range start() {
		if err := parse(t, strings.Fields(s.Line)); err != nil {
			t.Errorf("%s: %v", s.Line, err)
		}
	}
	for _, cmd := range app.Commands {
		if cmd.Category != "" && !strings.Contains(help, cmd.Name) {
			t.Errorf("%s is missing", cmd.Name)
		}
	}
}

// examplesWithoutCluster are the commands whose examples are run.
var examplesWithoutCluster = []string{
	"version", "completion", "render", "extender render", "profile list", "profile show", "profile convert",
	"profile validate", "plugin list",
}

func TestExamples(t *testing.T) {
	command.EachCommand(newProgram(newUI(nil, nil, nil), "pmk-sched").App, func(name string, cmd *cli.Command) {
		for line := range strings.Lines(cmd.UsageText) {
			args := strings.Fields(ofPipe(line))
			t.Run(strings.TrimSpace(line), func(t *testing.T) {
				chdir(t, map[string]string{"pmk-sched.yaml": schedulerForExamples,
					"extenders.yaml": schedulerForExamples + extenderForExamples, "config.yaml": configForExamples,
					"releases.yaml": releasesForExamples})
				t.Setenv("KUBECONFIG", "")
				t.Setenv("HOME", t.TempDir())
				var out, errors bytes.Buffer
				u := newUI(strings.NewReader(""), &out, &errors)
				p := newProgram(u, "pmk-sched")
				ran := slices.Contains(examplesWithoutCluster, strings.TrimPrefix(name, "pmk-sched "))
				if !ran {
					command.EachCommand(p.App, func(other string, cmd *cli.Command) {
						if other == name {
							cmd.Action = func(*cli.Context) error { ran = true; return nil }
						}
					})
				}
				if err := p.Execute(t.Context(), args); err != nil || !ran {
					t.Errorf("%v (run: %t)\n%s", err, ran, errors.String())
				}
			})
		}
	})
}

// ofPipe returns the command of a pipe that is pmk-sched's.
func ofPipe(line string) string {
	for part := range strings.SplitSeq(line, " | ") {
		if strings.HasPrefix(strings.TrimSpace(part), "pmk-sched ") {
			return part
		}
	}
	return line
}

const schedulerForExamples = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: my-scheduler}
spec:
  source: {branch: v1.24.3}
  image: {repository: localhost/kube-scheduler}
`

const releasesForExamples = `apiVersion: pmk-sched.io/v1alpha1
kind: SchedulerReleases
releases:
- minor: "1.24"
  release: v1.24.3
  image: registry.example.com/kube-scheduler:v1.24.3
  configuration:
    apiVersion: kubescheduler.config.k8s.io/v1beta3
    kind: KubeSchedulerConfiguration
    profiles: [{schedulerName: my-scheduler}]
`

const extenderForExamples = `  extenders:
  - {name: my-extender, ignorable: true, policies: [{name: blockall}]}
`

const configForExamples = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
parallelism: 4
`
