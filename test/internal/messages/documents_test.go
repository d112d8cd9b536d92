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

func readMessages(t *testing.T) *messages.Source {
	t.Helper()
	s, err := messages.Parse(root, "api", "cmd", "internal", "profiles", "versions")
	if err != nil {
		t.Fatal(err)
	}
	return s
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
		"| `upgrade check` | the error that blocks an upgrade with its remedies, and " +
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
