// Package pages runs the commands of a documentation page, and compares their output with what the
// page prints.
//
// A block of a page that is run stands below a marker:
//
//	<!-- run: PLACE -->       a block of console: lines that begin with "$ " are commands, the lines
//	                          below a command are its output, with standard error
//	<!-- file: NAME -->       a block that is written to the file NAME
//	<!-- file: NAME PATH -->  without a block: a copy of the file PATH of the repository
//
// In output a line of one … stands for any lines, and … within a line for any text. Durations,
// dates, hashes, random suffixes and the widths of columns are not compared.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

// Shell runs a command in a directory at one of the places of a page, and returns standard output
// and standard error in the order in which they were written.
type Shell func(t *testing.T, place, dir, command string) (output string, err error)

// Run runs all marked blocks of a page in their order, in a directory of their own. With -update
// the page gets the output instead, except where it matches.
func Run(t *testing.T, page, root string, shell Shell) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	p := &session{t: t, dir: t.TempDir(), root: root, page: page, shell: shell}
	result := p.run(strings.Split(string(text), "\n"))
	if p.commands == 0 {
		t.Fatalf("%s has no command that is run", page)
	}
	if golden.Updates() {
		if err := os.WriteFile(page, []byte(strings.Join(result, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type session struct {
	t               *testing.T
	dir, root, page string
	shell           Shell
	commands        int
}

var marker = regexp.MustCompile(`^<!-- (run|file): (\S+)(?: (\S+))? -->$`)

// run runs the blocks among the lines, and returns the lines with the output that was seen.
func (p *session) run(lines []string) (result []string) {
	p.t.Helper()
	for i := 0; i < len(lines); i++ {
		result = append(result, lines[i])
		found := marker.FindStringSubmatch(lines[i])
		switch {
		case found == nil:
			continue
		case found[3] != "":
			text, err := os.ReadFile(filepath.Join(p.root, found[3]))
			if err != nil {
				p.t.Fatalf("%s:%d: %v", p.page, i+1, err)
			}
			p.write(found[2], string(text))
			continue
		}
		first := i + 2 // below the fence
		last := slices.Index(lines[min(first, len(lines)):], "```")
		if first > len(lines) || !strings.HasPrefix(lines[i+1], "```") || last < 0 {
			p.t.Fatalf("%s:%d: no block below the marker", p.page, i+1)
		}
		block := lines[first : first+last]
		result = append(result, lines[i+1])
		if found[1] == "file" {
			p.write(found[2], strings.Join(block, "\n")+"\n")
			result = append(result, block...)
		} else {
			result = append(result, p.console(found[2], first+1, block)...)
		}
		result, i = append(result, "```"), first+last
	}
	return result
}

func (p *session) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// console runs the commands of a block whose first line has the given number.
func (p *session) console(place string, number int, block []string) (result []string) {
	p.t.Helper()
	for i := 0; i < len(block); {
		command, isCommand := strings.CutPrefix(block[i], "$ ")
		if !isCommand {
			p.t.Fatalf("%s:%d: output above the first command", p.page, number+i)
		}
		result = append(result, block[i])
		line := number + i
		for i++; i < len(block) && strings.HasSuffix(command, `\`); i++ {
			command += "\n" + block[i]
			result = append(result, block[i])
		}
		var want []string
		for ; i < len(block) && !strings.HasPrefix(block[i], "$ "); i++ {
			want = append(want, block[i])
		}
		p.commands++
		output, err := p.shell(p.t, place, p.dir, command)
		if err != nil {
			p.t.Fatalf("%s:%d: %s: %v\n%s", p.page, line, command, err, output)
		}
		got := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
		if output == "" {
			got = nil
		}
		if different := Compare(want, got); different == "" {
			got = want
		} else if !golden.Updates() {
			p.t.Errorf("%s:%d: output of %s: %s\n%s", p.page, line, command, different, output)
		}
		result = append(result, got...)
	}
	return result
}

// changing is what differs between two runs of a command, with its replacement.
var changing = []struct {
	text *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d(T[\d:]+Z)?`), "DATE"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+\b`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{8,64}\b`), "HASH"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|s|m|h|MiB|seconds)\b`), "N"},
	{regexp.MustCompile(`-[a-z0-9]{5}\b`), "-RANDOM"},
	{regexp.MustCompile(`\b\d+(\.\d+){3}\b`), "ADDRESS"},
	{regexp.MustCompile(`\s+`), " "},
}

func normalize(line string) string {
	for _, c := range changing {
		line = c.text.ReplaceAllString(line, c.with)
	}
	return strings.TrimSpace(line)
}

// Compare returns the first difference between the output that a page prints and the one that was
// seen, or "".
func Compare(want, got []string) string {
	at, anywhere := 0, false
	for _, line := range want {
		if strings.TrimSpace(line) == "…" {
			anywhere = true
			continue
		}
		pattern := pattern(line)
		found := slices.IndexFunc(got[at:], func(seen string) bool { return pattern.MatchString(normalize(seen)) })
		switch {
		case found < 0:
			return fmt.Sprintf("no line %q", line)
		case found > 0 && !anywhere:
			return fmt.Sprintf("%q in place of %q", got[at], line)
		}
		at, anywhere = at+found+1, false
	}
	if at < len(got) && !anywhere {
		return fmt.Sprintf("%q below the last line", got[at])
	}
	return ""
}

// pattern matches the lines that a line of a page stands for.
func pattern(line string) *regexp.Regexp {
	parts := strings.Split(normalize(line), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}
