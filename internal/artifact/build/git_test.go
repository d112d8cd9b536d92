package build

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// repository makes a git repository that holds the fake Kubernetes with its staging directories,
// tagged with the test release. It has no dependency but the staging modules.
func repository(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, change, strings.NewReplacer(
		"\texample.com/third v1.0.0\n", "", "\texample.com/third => example.com/third v1.1.0\n", "",
		"\t\"example.com/third\"\n", "", ", third.Name", "",
	))
	commitTree(t, dir)
	return dir
}

// vendored is a repository whose dependencies are in its vendor directory, as those
// of Kubernetes are. The go command is run with each of the given arguments.
func vendored(t *testing.T, p *proxy, change map[string]string, commands ...[]string) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, change, strings.NewReplacer())
	for _, args := range commands {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(p.environment(t), "GOTOOLCHAIN=local")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	commitTree(t, dir)
	return dir
}

func writeTree(t *testing.T, dir string, change map[string]string, edit *strings.Replacer) {
	t.Helper()
	for module, files := range releaseFiles(t, change) {
		directory := filepath.Join(dir, "staging", "src", filepath.FromSlash(module))
		if module == kubernetes {
			directory = dir
		}
		for name, data := range files {
			write(t, filepath.Join(directory, filepath.FromSlash(name)), edit.Replace(data))
		}
	}
}

func commitTree(t *testing.T, dir string) {
	t.Helper()
	gitIn(t, dir, "init", "--quiet", "--initial-branch=master")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "--quiet", "--message=release")
	gitIn(t, dir, "tag", testRelease)
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_AUTHOR_DATE=2022-07-13T14:21:56Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost", "GIT_COMMITTER_DATE=2022-07-13T14:21:56Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// workspaceFiles makes a tree of the kind that releases from 1.30 are: its
// staging modules are joined by a go.work.
func workspaceFiles() map[string]string {
	return map[string]string{
		"k8s.io/kubernetes/go.work": "go 1.24.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/client-go\n" +
			"\t./staging/src/k8s.io/component-base\n\t./staging/src/k8s.io/kubectl\n)\n",
	}
}

func TestTreeIsBuiltAndNotModified(t *testing.T) {
	tidy := []string{"mod", "tidy", "-e"}
	for name, tree := range map[string]func(*testing.T, *proxy) string{
		"replace directives": func(t *testing.T, _ *proxy) string { return repository(t, nil) },
		"workspace":          func(t *testing.T, _ *proxy) string { return repository(t, workspaceFiles()) },
		"replace directives with vendor directory": func(t *testing.T, p *proxy) string {
			return vendored(t, p, nil, tidy, []string{"mod", "vendor"})
		},
		"workspace with vendor directory": func(t *testing.T, p *proxy) string {
			return vendored(t, p, workspaceFiles(), tidy, []string{"work", "vendor"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			dir := tree(t, p)
			o := p.options(t)
			o.Source = "git:" + dir
			// A tree brings everything with it.
			o.Env = append(o.Env, "GOPROXY=off")
			commit := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))

			clean := mustRun(t, o)

			stamped := "v1.24.3 1 24 " + commit + " clean 2022-07-13T14:21:56Z\n"
			if got := output(t, clean.Binaries[0].Path); !strings.HasPrefix(got, stamped+stamped) {
				t.Errorf("the binary says %q, want %q twice", got, stamped)
			}
			if clean.Info.Commit != commit || clean.Info.Source != o.Source || len(clean.Info.Warnings) != 0 {
				t.Errorf("info: got %+v", clean.Info)
			}
			if again := mustRun(t, o); !again.Cached {
				t.Error("the same tree was built twice")
			}
			if changed := gitIn(t, dir, "status", "--porcelain", "--ignored"); changed != "" {
				t.Errorf("the tree was changed:\n%s", changed)
			}
			mustBeEmpty(t, newCache(o.CacheDir).temporary())
		})
	}
}

func TestChangesInATreeArePartOfTheInputs(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	o := p.options(t)
	dir := repository(t, nil)
	o.Source = "git:" + dir
	inputs := map[string]string{"clean": mustRun(t, o).Info.Inputs}
	for _, change := range []struct{ name, file, data string }{
		{"a changed file", "cmd/kube-proxy/proxy.go", "package main\n\nfunc main() {}\n"},
		{"a new file", "cmd/kube-scheduler/app/more.go", "package app\n"},
		{"the new file changed", "cmd/kube-scheduler/app/more.go", "package app\n\nconst More = 1\n"},
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(change.file)), change.data)
		result := mustRun(t, o)
		if result.Cached {
			t.Errorf("%s: the build from before was taken", change.name)
		}
		if !strings.Contains(output(t, result.Binaries[0].Path), " dirty ") {
			t.Errorf("%s: the binary does not say that the tree was changed", change.name)
		}
		for before, key := range inputs {
			if key == result.Info.Inputs {
				t.Errorf("%s: the inputs are those of %s", change.name, before)
			}
		}
		inputs[change.name] = result.Info.Inputs
	}
	gitIn(t, dir, "commit", "--quiet", "--all", "--message=ours")
	if result := mustRun(t, o); len(result.Info.Warnings) != 1 ||
		!strings.Contains(result.Info.Warnings[0], "not tagged v1.24.3") {
		t.Errorf("warnings of a tree that is not at the tag: got %q", result.Info.Warnings)
	}
}

func TestRepositoryIsClonedAtTheTagOnce(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	o := p.options(t)
	dir := repository(t, nil)
	gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message=later")
	gitIn(t, dir, "tag", "--annotate", "--message=annotated", "v1.24.4")
	o.Source = "git:file://" + dir
	commit := strings.TrimSpace(gitIn(t, dir, "rev-parse", "v1.24.3"))

	cloned := mustRun(t, o)

	if cloned.Info.Commit != commit || !strings.Contains(output(t, cloned.Binaries[0].Path), commit+" clean") {
		t.Errorf("built %s, want %s", cloned.Info.Commit, commit)
	}
	again := mustRun(t, o)
	if !again.Cached || again.Binaries[0] != cloned.Binaries[0] {
		t.Errorf("second build: cached %v", again.Cached)
	}
	o.Release = mustRelease(t, "v1.24.4")
	if later := mustRun(t, o); later.Info.Commit != strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD")) {
		t.Errorf("annotated tag: built %s", later.Info.Commit)
	}
	o.Keep = true
	o.Programs = []Program{{Name: "kube-proxy"}}
	if kept := mustRun(t, o); !exists(filepath.Join(kept.Dir, "go.mod")) {
		t.Errorf("kept: nothing in %q", kept.Dir)
	}
	o.Release = mustRelease(t, "v1.24.9")
	if failed := mustFail(t, o); failed.Cause != CauseBranchUnknown ||
		!strings.Contains(failed.Error(), "no tag v1.24.9") {
		t.Errorf("unknown tag: got %v", failed)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestSourceThatGitCannotRead(t *testing.T) {
	t.Parallel()
	release := mustRelease(t, testRelease)
	notKubernetes := t.TempDir()
	write(t, filepath.Join(notKubernetes, "go.mod"), "module example.com/other\n")
	notGit := t.TempDir()
	write(t, filepath.Join(notGit, "go.mod"), "module k8s.io/kubernetes\n")
	for name, test := range map[string]struct {
		source, path, want string
		cause              Cause
	}{
		"another project":         {notKubernetes, os.Getenv("PATH"), `module "example.com/other"`, ""},
		"directory without git":   {notGit, os.Getenv("PATH"), "git failed", CauseGit},
		"missing repository":      {"file:///nowhere/kubernetes", os.Getenv("PATH"), "git failed", CauseGit},
		"no git on PATH":          {"file:///nowhere/kubernetes", "/nowhere", "no git command", CauseGitMissing},
		"password in the address": {"file://me:secret@localhost/nowhere", os.Getenv("PATH"), "git failed", CauseGit},
	} {
		env := []string{"PATH=" + test.path, "HOME=" + t.TempDir(), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(notGit)}
		o := Options{Release: release, Source: "git:" + test.source,
			Environment: Environment{CacheDir: t.TempDir(), Env: env}}
		_, err := Run(t.Context(), o)
		var failed *Error
		known := errors.As(err, &failed) && failed.Cause == test.cause || test.cause == "" && problem.IsInvalid(err)
		if !known || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s with %q", name, err, test.cause, test.want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in the message: %v", name, err)
		}
		mustBeEmpty(t, newCache(o.CacheDir).temporary())
	}
}
