package pmksched

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// part is a row of hack/parts.txt.
type part struct {
	name string
	args []string // of make
}

func readParts(t *testing.T) (parts []part) {
	t.Helper()
	for line := range strings.Lines(read(t, "hack/parts.txt")) {
		name, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "#" {
			continue
		}
		target, variable, _ := strings.Cut(command, " ")
		p := part{name: name, args: []string{target}}
		if variable != "" {
			p.args = append(p.args, variable)
		}
		parts = append(parts, p)
	}
	return parts
}

// docs/status.md has a row for each part, in their order, which hack/parts.sh replaces.
func TestStatusHasARowForEachPart(t *testing.T) {
	var names, rows []string
	for _, p := range readParts(t) {
		names = append(names, p.name)
	}
	row := regexp.MustCompile(`(?m)^\| ([a-z-]+) \| ([0-9a-f]{12})? \| (\d{4}-\d\d-\d\d)? \| (\d+ min)? \|.*\|$`)
	for _, found := range row.FindAllStringSubmatch(read(t, "docs/status.md"), -1) {
		rows = append(rows, found[1])
	}
	if !slices.Equal(names, rows) {
		t.Errorf("parts %q\nrows of docs/status.md %q", names, rows)
	}
}

// checkout is a repository with hack/parts.sh and the parts good and bad.
type checkout struct{ dir string }

func newCheckout(t *testing.T) checkout {
	t.Helper()
	c := checkout{t.TempDir()}
	c.write(t, "hack/parts.sh", read(t, "hack/parts.sh"))
	c.write(t, "hack/parts.txt", "# comment\ngood pass WITH=./a ./b\nbad fail\n")
	c.write(t, "Makefile", "pass:\n\t@echo $(WITH)\nfail:\n\t@echo broken; test -e mended\n")
	c.write(t, ".gitignore", "bin/\n")
	c.write(t, "docs/status.md", "| part |\n|---|\n| good |  |  |  |  |\n| bad |  |  |  |  |\n")
	c.git(t, "init", "-q")
	c.commit(t)
	return c
}

func (c checkout) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(c.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func (c checkout) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits all files and returns the commit.
func (c checkout) commit(t *testing.T) string {
	t.Helper()
	c.git(t, "add", "-A")
	c.git(t, "commit", "-q", "-m", "files")
	return c.git(t, "rev-parse", "--short=12", "HEAD")
}

// run runs hack/parts.sh, and returns its output and exit status.
func (c checkout) run(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command("hack/parts.sh", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	text, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return string(text), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(text), 0
}

func TestPartsContinueWhereTheyWereInterrupted(t *testing.T) {
	c := newCheckout(t)
	first := c.git(t, "rev-parse", "--short=12", "HEAD")
	expect := func(status int, want, rows string, args ...string) {
		t.Helper()
		out, got := c.run(t, args...)
		if got != status || !regexp.MustCompile(`^`+want+`$`).MatchString(out) {
			t.Errorf("parts.sh %s: exit status %d, want %d; output, want %s:\n%s", args, got, status, want, out)
		}
		table := read(t, filepath.Join(c.dir, "docs/status.md"))
		if !regexp.MustCompile(`^\| part \|\n\|---\|\n` + rows + `$`).MatchString(table) {
			t.Errorf("docs/status.md, want %s:\n%s", rows, table)
		}
	}
	const day = `\d{4}-\d\d-\d\d`
	good := `\| good \| ` + first + ` \| ` + day + ` \| \d min \|  \|\n`
	expect(2, `no part other: see hack/parts.txt\n`, `\| good \|  \|  \|  \|  \|\n\| bad \|  \|  \|  \|  \|\n`, "good", "other")
	expect(1, `good ok \d min\nbad FAILED \d min, exit status 2; see bin/parts/bad.log\n`,
		good+`\| bad \|  \|  \|  \| `+first+`, `+day+` \|\n`)
	if log := read(t, filepath.Join(c.dir, "bin/parts/good.log")); log != "./a ./b\n" {
		t.Errorf("the part had the arguments %q", log)
	}
	// The table itself is no other state of the files.
	c.commit(t)
	before := `good passed before, at commit ` + first + `, in \d min\n`
	expect(0, before, good+`\| bad .*\n`, "good")

	c.write(t, "mended", "")
	expect(0, `bad ok \d min\nbad is not recorded: files differ from commit [0-9a-f]{12}\n`, good+`\| bad \|  \|  \|  \| `+first+`.*\n`, "bad")
	second := c.commit(t)
	expect(0, `good ok \d min\nbad ok \d min\n`, `\| good \| `+second+` .*\n\| bad \| `+second+` .* \|  \|\n`)
	expect(0, `good passed before.*\nbad passed before.*\n`, `\| good \| `+second+` .*\n\| bad .*\n`)

	// A part that fails later keeps the commit at which it passed.
	if err := os.Remove(filepath.Join(c.dir, "mended")); err != nil {
		t.Fatal(err)
	}
	third := c.commit(t)
	expect(1, `bad FAILED.*\n`, `\| good .*\n\| bad \| `+second+` \| `+day+` \| \d min \| `+third+`, `+day+` \|\n`, "bad")
}
