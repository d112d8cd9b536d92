package messages_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/test/internal/messages"
	"github.com/pmk-sched/pmk-sched/versions"
)

const root = "../../.."

// area is a section of docs/errors.md.
type area struct {
	title, commands string
	packages        []string // and the packages below them, unless another area has these
}

func areas() []area {
	return []area{
		{"Command line", "every command", []string{"cmd/pmk-sched", "internal/base"}},
		{"pmk-sched.yaml and its flags", "commands with `-f`: `check`, `render`, `diff`, `deploy`, `build`, `simulate`",
			[]string{"api/v1alpha1", "internal/deploy/spec"}},
		{"Releases", "commands with `--branch`, and `upgrade`", []string{"versions"}},
		{"Scheduler configurations",
			"`profile convert`, `profile validate`, and commands with `--config` or `--preset`: `check`, `deploy`, `replace`",
			[]string{"profiles", "internal/artifact/configcheck"}},
		{"Clusters and nodes", "every command that connects to a cluster",
			[]string{"internal/cluster/kubeapi", "internal/cluster/inspect", "internal/cluster/session"}},
		{"Builds and plugins", "`build`, `plugin`, `upgrade`, and commands that compile plugins: `simulate`, `bench`, `shadow`",
			[]string{"internal/artifact"}},
		{"Images", "`build`, `deploy`, `replace`, `upgrade`", []string{"internal/artifact/image"}},
		{"Programs of Kubernetes", "`lab`, `simulate`, `bench`, `shadow`, `explain --exact`",
			[]string{"internal/artifact/programs"}},
		{"Deployments", "`check`, `render`, `diff`, `deploy`, `upgrade`, `history`, `rollback`, `uninstall`, `status`",
			[]string{"internal/deploy", "internal/cluster/apply"}},
		{"Many clusters", "`fleet`", []string{"internal/fleet"}},
		{"In the cluster", "`controller`", []string{"internal/controller"}},
		{"Credentials", "`credentials refresh`, and `deploy`", []string{"internal/deploy/signing"}},
		{"Extenders", "`extender`", []string{"internal/deploy/extenders"}},
		{"Verification", "`verify`, `deploy`, `replace`, `extender deploy`", []string{"internal/deploy/verify"}},
		{"The default scheduler", "`replace`, `restore`, `status`, `upgrade --default`", []string{"internal/replace"}},
		{"Pods, logs and archives", "`explain`, `logs`, `sysdump`", []string{"internal/cluster"}},
		{"Snapshots", "`snapshot`, and commands with `--snapshot`", []string{"internal/foresight/snapshot"}},
		{"Simulations", "`simulate`, `test`, `bench`, `shadow`, `plugin test`, `explain --exact`", []string{"internal/foresight"}},
		{"Labs", "`lab`", []string{"internal/lab"}},
	}
}

// areaOf returns the index of the area with the longest path of a package, or -1.
func areaOf(pkg string, all []area) int {
	best, length := -1, 0
	for i, a := range all {
		for _, p := range a.packages {
			if (pkg == p || strings.HasPrefix(pkg, p+"/")) && len(p) > length {
				best, length = i, len(p)
			}
		}
	}
	return best
}

func readMessages(t *testing.T) *messages.Source {
	t.Helper()
	s, err := messages.Parse(root, "api", "cmd", "internal", "profiles", "versions")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocumentOfErrorsHasEveryError(t *testing.T) {
	all := areas()
	found := make([][]messages.Error, len(all))
	for _, e := range readMessages(t).Errors() {
		at := areaOf(e.Package, all)
		if at < 0 {
			t.Errorf("package %s has errors and no area in areas()", e.Package)
			continue
		}
		found[at] = append(found[at], e)
	}
	var b bytes.Buffer
	b.WriteString("# Errors\n\n" + generated + `
Errors of pmk-sched with their remedies, which the command prints below the error, and errors about
the input. Search for a part of the message that has no names: in this list, words in capitals and
… stand for names, numbers and the errors of other programs. The exit status is 1 for a failure, 2
for an error in the command line or a file, and 3 for a failed check. Symptoms on a cluster are in
[troubleshooting](troubleshooting.md), the findings of ` + "`status` and `explain`" + ` in
[findings](findings.md).
`)
	for i, a := range all {
		if len(found[i]) == 0 {
			t.Errorf("area %q has no errors", a.title)
		}
		fmt.Fprintf(&b, "\n## %s\n\nCommands: %s.\n\n| error | exit status | remedy |\n|---|---|---|\n", a.title, a.commands)
		slices.SortFunc(found[i], func(a, b messages.Error) int {
			return strings.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text))
		})
		for text, group := range groups(found[i]) {
			fmt.Fprintf(&b, "| %s | %d | %s |\n", cell(code(text)), group.Status, cell(strings.Join(group.Remedies, "<br>")))
		}
	}
	golden.Equal(t, root+"/docs/errors.md", b.Bytes())
}

// groups returns the errors of one text as one error with all their remedies, in their order.
func groups(list []messages.Error) func(yield func(string, messages.Error) bool) {
	return func(yield func(string, messages.Error) bool) {
		for len(list) > 0 {
			one := list[0]
			one.Remedies = slices.Clone(one.Remedies)
			list = list[1:]
			for len(list) > 0 && list[0].Text == one.Text {
				for _, r := range list[0].Remedies {
					if !slices.Contains(one.Remedies, r) {
						one.Remedies = append(one.Remedies, r)
					}
				}
				list = list[1:]
			}
			if !yield(one.Text, one) {
				return
			}
		}
	}
}

func TestDocumentOfFindingsHasEveryCode(t *testing.T) {
	s := readMessages(t)
	var b bytes.Buffer
	b.WriteString("# Findings\n\n" + generated + `
Each finding has a code that does not change. Words in capitals and … stand for names, numbers and
the messages of other programs.

| command | findings | exit status |
|---|---|---|
` + "| `status` | [codes](#findings-of-status) in brackets; `findings` in JSON | 3 |\n" +
		"| `explain` | [causes](#causes-of-explain); `findings` in JSON | 0 |\n" +
		"| `check`, `deploy` | [checks](#checks-of-check-and-deploy) | 3 if one failed, 0 after warnings |\n" +
		"| `detect` | [warnings](#warnings-of-detect) and [known problems](#known-problems) | 0 |\n" +
		"| `upgrade --check` | the [error](errors.md) that blocks an upgrade with its remedies, and " +
		"[known problems](#known-problems) of the new release | 3 if an upgrade is due |\n" +
		"| `verify` | the causes of `explain` for its pod, and problems of the scheduler | 3 |\n")
	section := func(title, intro string, list []*messages.Finding) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, intro)
		for _, f := range list {
			if f.Meaning == "" {
				t.Errorf("%s: the constant has no comment with its meaning", f.Code)
			}
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", f.Code, sentence(f.Meaning))
			if len(f.Texts)+len(f.Remedies) > 0 {
				b.WriteByte('\n')
			}
			for _, text := range f.Texts {
				fmt.Fprintf(&b, "- Message: %s\n", code(text))
			}
			for _, remedy := range f.Remedies {
				fmt.Fprintf(&b, "- Remedy: %s\n", escaped(remedy))
			}
		}
	}
	section("Findings of status", "`pmk-sched status` prints them, with the scheduler, extender or node that they are about.",
		s.StatusFindings())
	section("Causes of explain", "`pmk-sched explain` prints them in the column CAUSE, and `verify` for its pod. Messages "+
		"that end with … are the\nscheduler's own.", s.Causes())
	section("Checks of check and deploy", "A check that fails prevents the deployment. A check that cannot run is unknown, "+
		"which is not a failure.", s.Checks())
	b.WriteString("\n## Warnings of detect\n\nThe other commands that inspect the cluster print them too.\n\n")
	for _, text := range s.Warnings() {
		fmt.Fprintf(&b, "- %s\n", code(text))
	}
	b.WriteString(knownProblems())
	golden.Equal(t, root+"/docs/findings.md", b.Bytes())
}

const generated = "Generated from the source; `make golden` writes it.\n"

// newestPatch is higher than the patch of any release of Kubernetes.
const newestPatch = 40

// knownProblems is the section about bugs of kube-scheduler.
func knownProblems() string {
	type row struct {
		versions.Problem
		fixes []string
	}
	var rows []*row
	byIssue := map[string]*row{}
	minors := map[int]bool{}
	for _, r := range versions.Releases() {
		minors[r.Minor] = true
	}
	for _, minor := range slices.Sorted(maps.Keys(minors)) {
		for patch := range newestPatch {
			for _, p := range versions.KnownProblems(versions.Release{Major: 1, Minor: minor, Patch: patch}) {
				if byIssue[p.Issue] == nil {
					byIssue[p.Issue] = &row{Problem: p}
					rows = append(rows, byIssue[p.Issue])
				}
				fix := p.Fix.String()
				if p.Fix.IsZero() {
					fix = fmt.Sprintf("none in 1.%d", minor)
				}
				if r := byIssue[p.Issue]; !slices.Contains(r.fixes, fix) {
					r.fixes = append(r.fixes, fix)
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n## Known problems\n\nBugs of kube-scheduler that affect some releases. `check` and `deploy` warn of " +
		"them as\n`known-problem` if the configuration meets the condition, `detect` and `upgrade` print them.\n\n" +
		"| issue | effect | condition | fixed in |\n|---|---|---|---|\n")
	for _, r := range rows {
		repository, number, _ := strings.Cut(r.Issue, "#")
		fmt.Fprintf(&b, "| [%s](https://github.com/kubernetes/%s/issues/%s) | %s | %s | %s |\n", r.Issue, repository, number,
			cell(escaped(r.Effect)), cell(escaped(r.When.String())), strings.Join(r.fixes, ", "))
	}
	return b.String()
}

// code is a text as code.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// escaped is a text that is not HTML.
func escaped(text string) string { return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text) }

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// sentence is a text with a capital and a period.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
