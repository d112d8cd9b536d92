//go:build linux

package hostile

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// command is how the tests run a command.
type command struct {
	// lines are arguments of the command. NAME is each of the hostile schedulers, DIR a new directory.
	lines []string
	// changes: the command changes the revisions of NAME.
	changes bool
	// compiles: the command compiles or runs the programs of Kubernetes, which takes minutes.
	compiles bool
	// reads: objects of the cluster name images, which the command may read.
	reads bool
	// passes: the command passes text on as it is, unless its output is a terminal.
	passes bool
	// ends is when the command, which runs until it is stopped, gets SIGTERM.
	ends time.Duration
}

// second bounds the waits of commands that change something: no kubelet runs what they deploy.
const second = " --timeout 1s --stable-for 100ms"

// rendered are the flags of a scheduler.
const rendered = " --name NAME --image localhost/s:v1 --credentials serviceaccount"

// commands returns the commands that connect to a cluster.
func commands() map[string]command {
	simulate := func(lines ...string) command { return command{lines: lines, compiles: true} }
	fleet := func(lines ...string) command {
		var all []string
		for _, from := range []string{"contexts", "argocd", "cluster-api", "cluster-profiles"} {
			for _, line := range lines {
				all = append(all, line+" --timeout 3s --access-providers HOME/providers.json --from "+from)
			}
		}
		return command{lines: all}
	}
	return map[string]command{
		"detect":               {lines: []string{"", "--name NAME", "-o json"}},
		"check":                {lines: []string{rendered, rendered + " -o json"}},
		"render":               {lines: []string{rendered}},
		"render chart":         {lines: []string{rendered + " --to-dir DIR"}},
		"render monitoring":    {lines: []string{rendered}},
		"render autoscaler":    {lines: []string{rendered + " --for karpenter"}},
		"render ask":           {lines: []string{rendered + " --server-image localhost/p:v1"}},
		"diff":                 {lines: []string{rendered, "--name NAME --revision 1", "--name NAME --revision 2"}},
		"deploy":               {lines: []string{rendered + " --dry-run", "--name NAME --image localhost/s:v2" + second}, changes: true},
		"rollout":              {lines: []string{"--name NAME -f HOME/NAME.yaml --dry-run"}},
		"migrate":              {lines: []string{"--live NAME", "--live NAME -o json"}},
		"verify":               {lines: []string{"--name NAME --timeout 1s", "--default --timeout 1s"}},
		"uninstall":            {lines: []string{"--name NAME --yes --timeout 2s"}, changes: true},
		"replace":              {lines: []string{"--preset binpack --all-nodes --yes", "--preset binpack --all-nodes --yes --pod-image localhost/p:v1 --timeout 1s"}},
		"restore":              {lines: []string{"--all-nodes --yes"}},
		"extender render":      {lines: []string{"--name x --policy blockall --ignorable=true --for NAME"}},
		"extender deploy":      {lines: []string{"--name x --policy blockall --image localhost/x:v1 --ignorable=true --for NAME" + second}, changes: true},
		"extender restart":     {lines: []string{"--name NAME" + second, "--name x" + second}},
		"extender uninstall":   {lines: []string{"--name NAME --yes" + second, "--name x --yes" + second}, changes: true},
		"status":               {lines: []string{"", "--name NAME", "-o json"}},
		"history":              {lines: []string{"--name NAME", "--name NAME -o yaml"}},
		"rollback":             {lines: []string{"--name NAME" + second, "--name NAME --to 1" + second}, changes: true, reads: true},
		"upgrade check":        {lines: []string{"", "--name NAME"}},
		"upgrade":              {lines: []string{"--name NAME --image localhost/s:v1" + second, "--name NAME" + second}, changes: true},
		"credentials show":     {lines: []string{"--name NAME", "--name NAME -o json"}},
		"credentials refresh":  {lines: []string{"--name NAME" + second, "--name NAME --csr" + second}, changes: true},
		"explain":              {lines: []string{"-n kube-system pending", "-n kube-system -o json running"}},
		"logs":                 {lines: []string{"--name NAME"}, passes: true},
		"sysdump":              {lines: []string{"--archive DIR/dump.tar.gz", "--name NAME --archive DIR/dump.tar.gz"}},
		"fleet status":         fleet("", "-o json", "--name NAME"),
		"fleet check":          fleet("-f HOME/NAME.yaml"),
		"fleet detect":         fleet("", "-o json"),
		"fleet deploy":         fleet("-f HOME/NAME.yaml --stable-for 100ms"),
		"fleet upgrade":        fleet("--name NAME --image localhost/s:v1 --stable-for 100ms", "--name NAME --stable-for 100ms"),
		"controller run":       {lines: []string{"-n kube-system --leader-elect=false --metrics-address 0 --health-address 0" + second}, reads: true, ends: 5 * time.Second},
		"controller render":    {lines: []string{"--image localhost/c:v1"}},
		"snapshot":             {lines: []string{"--to-file DIR/s.tar.gz", "--to-file DIR/s.tar.gz --anonymize"}},
		"record":               {lines: []string{"--for 1s --archive DIR/r.tar.gz"}},
		"simulate pending":     simulate("--branch v1.24.3", "--name NAME --branch v1.24.3"),
		"simulate replace-all": simulate("--branch v1.24.3"),
		"simulate drain":       simulate("--branch v1.24.3 node-1"),
		"simulate add":         simulate("--branch v1.24.3 -m HOME/pod.yaml"),
		"simulate nodes":       simulate("--branch v1.24.3 --add node-1=1"),
		"simulate run":         simulate("--branch v1.24.3 HOME/scenario.yaml"),
		"simulate preemptions": simulate("--branch v1.24.3"),
		"simulate upgrade":     simulate("--from v1.24.3 --to v1.25.16"),
		"shadow":               simulate("--branch v1.24.3 --preset binpack --for 2s"),
		"ask serve":            {lines: []string{"--branch v1.24.3 --listen unix:DIR/ask.sock"}, reads: true, ends: 5 * time.Second},
		"bench":                simulate("--branch v1.24.3 --pods 5 --samples 1"),
	}
}

// offline returns why commands do not connect to the cluster of --kubeconfig.
func offline() map[string]string {
	return map[string]string{
		"ask":              "it asks a server",
		"ask mcp":          "it serves standard input",
		"simulate matrix":  "its input is snapshots; --job needs a registry to push to",
		"simulate replay":  "its input is a recording",
		"test":             "its input is snapshots",
		"tune":             "its input is a snapshot",
		"plugin test":      "its input is a file with objects",
		"build":            "the release is a flag",
		"build extender":   "it serves every release",
		"build self":       "it packs the program",
		"render kustomize": "the releases are a file",
		"verify-image":     "it reads an image",
		"bundle create":    "the release is a flag",
		"bundle unpack":    "it reads a file",
		"bundle push":      "it reads a file",
		"plugin list":      "it prints what pmk-sched has",
		"plugin new":       "it writes a directory",
		"profile list":     "it prints what pmk-sched has",
		"profile show":     "the release is a flag",
		"profile convert":  "it reads a file",
		"profile validate": "it reads a file",
		"schema":           "it prints what pmk-sched has",
		"lab":              "it runs pmk-lab",
		"completion":       "it prints a script",
		"version":          "it prints what pmk-sched has",
	}
}

// listed finds a command in the list of commands of a help text.
var listed = regexp.MustCompile(`(?m)^(?:  |    )([a-z][a-z-]*) +\S.*[^:]$`)

// helped returns the commands of --help, and of the --help of commands that have commands.
func helped(t *testing.T, of ...string) (all []string) {
	t.Helper()
	if slices.Equal(of, []string{"lab"}) {
		return of // its help is that of pmk-lab
	}
	help := run.Command(t, exec.CommandContext(run.Context(t), run.Program(t), append(of, "--help")...)).OK(t)
	_, text, found := strings.Cut(help.Stdout, "\nCOMMANDS:\n")
	if !found || strings.Contains(help.Stdout, " [COMMAND] ") {
		all = append(all, strings.Join(of, " "))
	}
	text, _, _ = strings.Cut(text, "\nGLOBAL FLAGS:\n")
	text, _, _ = strings.Cut(text, "\nFLAGS:\n")
	for _, match := range listed.FindAllStringSubmatch(text, -1) {
		all = append(all, helped(t, append(slices.Clone(of), match[1])...)...)
	}
	return all
}

// A command that is new is run against the hostile cluster too, or does not connect to a cluster.
func TestEveryCommandOfTheHelpIsRunAgainstTheHostileCluster(t *testing.T) {
	with, without := commands(), offline()
	all := helped(t)
	if len(all) < 50 {
		t.Fatalf("the help lists %d commands only: %q", len(all), all)
	}
	for _, name := range all {
		_, connects := with[name]
		if (without[name] != "") == connects {
			t.Errorf("%s: add it to commands, or to offline with the reason", name)
		}
		delete(with, name)
		delete(without, name)
	}
	for name := range with {
		t.Errorf("%s is not a command", name)
	}
	for name := range without {
		t.Errorf("%s is not a command", name)
	}
}
