package build

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

// generatedModule is the generated module's path, which binaries have as their main module.
const generatedModule = "pmk-sched.io/build"

// SchedulerDir is the directory of the kube-scheduler in the generated module, and SchedulerPackage
// its import path.
const (
	SchedulerDir     = "cmd/kube-scheduler"
	SchedulerPackage = generatedModule + "/" + SchedulerDir
)

const (
	mainFile    = SchedulerDir + "/main.go"
	pluginsFile = SchedulerDir + "/plugins.go"
)

// schedulerMain is cmd/kube-scheduler/scheduler.go of the release; plugins are in another file.
// Until 1.22 the main executes the command itself, afterwards component-base/cli runs it.
var schedulerMain = template.Must(template.New(mainFile).Parse(`// Command kube-scheduler is the scheduler of Kubernetes {{.Release}}.
package main

import (
{{- if not .CLI}}
	"math/rand"
{{- end}}
	"os"
{{- if not .CLI}}
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
{{- else}}

	"k8s.io/component-base/cli"
{{- end}}
{{- if .JSON}}
	_ "k8s.io/component-base/logs/json/register"
{{- end}}
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
{{- if not .CLI}}
	rand.Seed(time.Now().UnixNano())
	pflag.CommandLine.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
{{- end}}
	command := app.NewSchedulerCommand({{if .Plugins}}plugins()...{{end}})
{{- if .CLI}}
	os.Exit(cli.Run(command))
{{- else}}
	os.Exit(run(command))
{{- end}}
}
{{- if not .CLI}}

func run(command interface{ Execute() error }) int {
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := command.Execute(); err != nil {
		return 1
	}
	return 0
}
{{- end}}
`))

// generateRelease returns a release's generated module: go.mod, go.sum, the kube-scheduler's main,
// and the plugins.
func generateRelease(
	release versions.Release, rules versions.Rules, s source, stagingSums string, set *plugins.Set,
	target plugins.Target,
) (map[string][]byte, error) {
	requires, replaces := set.Directives(target)
	files, err := generateModule(s, release.Staging(), stagingSums+set.Sums(), requires, replaces)
	if err != nil {
		return nil, err
	}
	if files[mainFile], err = generateMain(release, rules, !set.Empty()); err != nil || set.Empty() {
		return files, err
	}
	if files[pluginsFile], err = set.Registrations(); err != nil {
		return nil, err
	}
	maps.Copy(files, set.ModuleFiles(target))
	maps.Copy(files, set.APIFiles(target))
	return files, nil
}

// generateMain returns main for a release's kube-scheduler, which calls plugins if there are any.
func generateMain(release versions.Release, rules versions.Rules, plugins bool) ([]byte, error) {
	var text bytes.Buffer
	err := schedulerMain.Execute(&text, map[string]any{
		"Release": release, "CLI": rules.ComponentBaseCLI, "JSON": rules.LogsJSONRegister, "Plugins": plugins,
	})
	if err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// generateModule returns go.mod and go.sum for a module that requires s with its own versions: s
// itself, its staging modules at the version under which they are published, and the replaced
// modules in its go.mod. requires and replaces are further directives.
func generateModule(s source, stagingVersion, moreSums string, requires, replaces []string) (map[string][]byte, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\n", generatedModule)
	if s.GoDirective != "" {
		fmt.Fprintf(&text, "go %s\n\n", s.GoDirective)
	}
	for _, setting := range s.Godebug {
		fmt.Fprintf(&text, "godebug %s\n\n", modfile.AutoQuote(setting))
	}
	fmt.Fprintf(&text, "require %s %s\n\n", s.Path, s.Version)
	pinned := pins(s, stagingVersion)
	for _, line := range requires {
		fmt.Fprintf(&text, "require %s\n\n", line)
	}
	text.WriteString("replace (\n")
	for _, p := range pinned {
		old := strings.TrimSuffix(p.Path+" "+p.Version, " ")
		fmt.Fprintf(&text, "\t%s => %s %s\n", old, p.NewPath, p.NewVersion)
	}
	for _, line := range replaces {
		fmt.Fprintf(&text, "\t%s\n", line)
	}
	text.WriteString(")\n")
	if _, err := modfile.Parse("go.mod", []byte(text.String()), nil); err != nil {
		return nil, err
	}
	return map[string][]byte{"go.mod": []byte(text.String()), "go.sum": sortedLines(s.GoSum + moreSums)}, nil
}

// pins returns the generated module's replace directives, sorted.
func pins(s source, stagingVersion string) []pin {
	all := append([]pin{{s.Path, "", s.Path, s.Version}}, s.Pins...)
	if stagingVersion != "" {
		for _, path := range slices.Concat(s.Staging, s.Unused) {
			all = append(all, pin{path, "", path, stagingVersion})
		}
	}
	slices.SortStableFunc(all, func(a, b pin) int {
		return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version)
	})
	return all
}

// sortedLines sorts the lines of a go.sum and removes duplicates.
func sortedLines(text string) []byte {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines[line+"\n"] = true
		}
	}
	return []byte(strings.Join(slices.Sorted(maps.Keys(lines)), ""))
}
