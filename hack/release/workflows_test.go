package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is the part of a workflow that the tests read.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

func parse(t *testing.T, name string, text []byte) (w workflow) {
	t.Helper()
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return w
}

// job is the part of a job of a workflow that the tests read.
type job struct {
	Environment any               `json:"environment"`
	Permissions map[string]string `json:"permissions"`
	Steps       []step            `json:"steps"`
	// Container is a name, or a mapping.
	Container any `json:"container"`
}

type step struct {
	Name string            `json:"name"`
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	If   string            `json:"if"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

// compiles reports whether the step runs code of the repository, of its modules or of its tools.
func (s step) compiles() bool {
	action, _, _ := strings.Cut(s.Uses, "@")
	return action == "actions/checkout" || action == "actions/setup-go" ||
		regexp.MustCompile(`\b(make|go|hack/)`).MatchString(s.Run)
}

// secret reports whether the step can read a secret or a token that is not read-only.
func (s step) secret() bool {
	for _, value := range s.Env {
		if strings.Contains(value, "secrets.") || strings.Contains(value, "github.token") {
			return true
		}
	}
	return false
}

func workflows(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no workflows", err)
	}
	texts := map[string][]byte{}
	for _, file := range append(files, "../../action.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = text
	}
	return texts
}

// A job of GitLab has the secrets of its environment.
func TestJobsOfGitLabThatCompileHaveNoEnvironment(t *testing.T) {
	text, err := os.ReadFile("../../.gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var jobs map[string]any
	if err := yaml.Unmarshal(text, &jobs); err != nil {
		t.Fatal(err)
	}
	for name, value := range jobs {
		j, _ := value.(map[string]any)
		run := step{Run: fmt.Sprint(j["script"])}
		_, secret := j["environment"]
		if named := regexp.MustCompile(`\$\{?(SIGN_KEY|REGISTRY_TOKEN)`).MatchString(run.Run); named != secret {
			t.Errorf("%s: has secrets: %t, has an environment: %t", name, named, secret)
		}
		if secret && run.compiles() {
			t.Errorf("%s compiles and has secrets", name)
		}
	}
}

// A module, a tool or an action that is not what it was must not be able to sign or publish.
func TestJobsThatCompileHaveNoSecretsAndMayOnlyRead(t *testing.T) {
	for name, text := range workflows(t) {
		w := parse(t, name, text)
		if len(w.Jobs) > 0 && (len(w.Permissions) != 1 || w.Permissions["contents"] != "read") {
			t.Errorf("%s: permissions %v, want contents: read alone", name, w.Permissions)
		}
		for id, j := range w.Jobs {
			checkJob(t, name+" "+id, j)
		}
	}
}

func checkJob(t *testing.T, name string, j job) {
	t.Helper()
	var compiles, secret bool
	for _, s := range j.Steps {
		compiles, secret = compiles || s.compiles(), secret || s.secret()
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
			t.Errorf("%s: checkout leaves the token on disk: set persist-credentials: false", name)
		}
	}
	for scope, access := range j.Permissions {
		secret = secret || access != "read" && scope != ""
	}
	if compiles && secret {
		t.Errorf("%s compiles or checks out, and has secrets or permissions to write", name)
	}
	if secret && j.Environment == nil {
		t.Errorf("%s has secrets or permissions to write, and no protected environment", name)
	}
}

// A lab mounts file systems, and makes namespaces and cgroups: a container may not by default.
func TestJobsWithLabsArePrivileged(t *testing.T) {
	found := 0
	for name, text := range workflows(t) {
		for id, j := range parse(t, name, text).Jobs {
			for _, s := range j.Steps {
				if !regexp.MustCompile(`\bmake (demo|test|soak|bench)|hack/parts.sh "`).MatchString(s.Run) {
					continue
				}
				found++
				container, _ := j.Container.(map[string]any)
				if options, _ := container["options"].(string); !strings.Contains(options, "--privileged") {
					t.Errorf("%s %s: %s needs a privileged container", name, id, s.Run)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no job starts a lab")
	}
}

// Tags of actions can be moved.
func TestActionsArePinnedByCommit(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for name, text := range workflows(t) {
		for line := range strings.Lines(string(text)) {
			_, action, uses := strings.Cut(line, "uses: ")
			if action = strings.TrimSpace(action); uses && !pinned.MatchString(action) {
				t.Errorf("%s: %s is not pinned to a commit, with its version as a comment", name, action)
			}
		}
	}
}

// The rows come from jobs that compile. Nothing else of them reaches the page that is committed.
func TestStatusTakesNothingButRows(t *testing.T) {
	const old = "# Status\n| part | passed at |\n|---|---|\n| good |  |  |  |  |\n| bad | 0123456789ab | 2026-11-01 | 3 min |  |\n"
	const good = "| good | ba9876543210 | 2026-11-28 | 12 min |  |\n"
	const bad = "| bad | 0123456789ab | 2026-11-01 | 3 min | ba9876543210, 2026-11-28 |\n"
	for _, tc := range []struct {
		name string
		rows []string
		want string // "" if nothing is committed
	}{
		{"both", []string{good, bad}, strings.NewReplacer("| good |  |  |  |  |\n", good,
			"| bad | 0123456789ab | 2026-11-01 | 3 min |  |\n", bad).Replace(old)},
		{"one", []string{good}, strings.Replace(old, "| good |  |  |  |  |\n", good, 1)},
		{"the same", []string{"| good |  |  |  |  |\n"}, ""},
		{"text beside the row", []string{good + "click here\n", "| bad | [x](y) | 2026-11-01 | 3 min |  |\n"},
			strings.Replace(old, "| good |  |  |  |  |\n", good, 1)},
		{"a row that the table does not have", []string{"| other | ba9876543210 | 2026-11-28 | 12 min |  |\n"}, ""},
		{"no row", []string{"no row\n"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, row := range tc.rows {
				part := filepath.Join(dir, "parts", fmt.Sprintf("part-%d", i))
				if err := os.MkdirAll(part, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(part, "row.md"), row)
			}
			write(t, filepath.Join(dir, "served.md"), old)
			write(t, filepath.Join(dir, "gh"), `#!/bin/bash
case "$*" in
*"--jq .content") base64 served.md ;;
*"--jq .sha") echo abc ;;
*"--method PUT repos/o/r/contents/docs/status.md -f branch=main -f sha=abc "*) all="$*" && base64 -d <<<"${all##*content=}" >committed.md ;;
*) exit 1 ;;
esac
`)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", stepNamed(t, "parts.yml", "status", "write docs/status.md").Run)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=o/r", "GITHUB_REF_NAME=main",
				"GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
			out, err := cmd.CombinedOutput()
			committed, missing := os.ReadFile(filepath.Join(dir, "committed.md"))
			if missing != nil && tc.want != "" || string(committed) != tc.want {
				t.Errorf("committed %q, want %q; %v\n%s", committed, tc.want, err, out)
			}
			if (err == nil) != (tc.name != "no row") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func stepNamed(t *testing.T, file, id, name string) step {
	t.Helper()
	for _, s := range parse(t, file, workflows(t)[file]).Jobs[id].Steps {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s: no step %q", file, name)
	return step{}
}
