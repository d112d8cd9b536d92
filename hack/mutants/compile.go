package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// switches is the file that each changed package gets. MUTANT is the mutant that is on; MUTANT_HITS
// is the file to which the mutants are appended that the tests reach. It allocates nothing for a
// mutant that was reached before, because tests count allocations.
const switches = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

var (
	mutantHits = os.Getenv("MUTANT_HITS")
	mutantSeen [%[3]d]atomic.Bool
	mutantNow  = func() int {
		number, _ := strings.CutPrefix(os.Getenv("MUTANT"), "%[2]s:")
		n, _ := strconv.Atoi(number)
		return n
	}()
)

func mutantOn(n int) bool {
	if mutantHits != "" && !mutantSeen[n].Swap(true) {
		if f, err := os.OpenFile(mutantHits, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			fmt.Fprintf(f, "%[2]s:%%d\n", n)
			f.Close()
		}
	}
	return n == mutantNow
}
`

// tests are the unit tests, compiled with all mutants.
type tests struct {
	dir     string // of the overlay and of the programs
	overlay string
	of      map[string]*program // by import path
}

// program contains a package's compiled unit tests.
type program struct {
	pkg     *pkg
	path    string
	reached map[string]bool // the mutants that the tests reach, by id
	limit   time.Duration   // the tests take a part of it without a mutant
}

func (m *mutant) id() string { return m.pkg.ImportPath + ":" + strconv.Itoa(m.number) }

// compile compiles the packages with all their mutants, below dir. Mutants that do not compile are
// removed from their packages.
func compile(ctx context.Context, dir string, pkgs []*pkg) (*tests, error) {
	t := &tests{dir: dir, overlay: filepath.Join(dir, "overlay.json"), of: map[string]*program{}}
	replace := map[string]string{}
	paths := make([]string, 0, len(pkgs))
	for _, p := range pkgs {
		paths = append(paths, p.ImportPath)
		if err := p.write(dir, replace); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(t.overlay, text, 0o600)
	}
	for err == nil {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-overlay", t.overlay}, paths...)...)
		cmd.Stderr = &stderr
		if err = cmd.Run(); err == nil || !errors.As(err, new(*exec.ExitError)) || ctx.Err() != nil {
			break
		}
		if err = t.drop(pkgs, replace, stderr.String()); err != nil {
			err = fmt.Errorf("compile the mutants: %w: %s", err, &stderr)
		}
	}
	return t, err
}

// write writes a package's files with its mutants below dir.
func (p *pkg) write(dir string, replace map[string]string) error {
	below := filepath.Join(dir, filepath.FromSlash(p.path()))
	if err := os.MkdirAll(below, 0o700); err != nil {
		return err
	}
	files := map[string]string{
		"mutants_switches.go": fmt.Sprintf(switches, p.read[0].syntax.Name.Name, p.ImportPath, p.places+1),
	}
	for _, one := range p.read {
		mutants := slices.DeleteFunc(slices.Clone(p.mutants), func(m *mutant) bool { return m.file != one })
		files[one.name] = write(one.text, mutants)
	}
	for name, text := range files {
		to := filepath.Join(below, name)
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(p.Dir, name)] = to
	}
	return nil
}

var (
	position = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):(\d+): `)
	number   = regexp.MustCompile(`mutantOn\((\d+)\)`)
)

// drop removes the mutants that the compiler's messages are about.
func (t *tests) drop(pkgs []*pkg, replace map[string]string, messages string) error {
	dropped := 0
	for _, found := range position.FindAllStringSubmatch(messages, -1) {
		for _, p := range pkgs {
			written, ok := replace[filepath.Join(p.Dir, filepath.Base(found[1]))]
			if !ok || !strings.HasSuffix(filepath.Dir(found[1]), p.path()) {
				continue
			}
			text, err := os.ReadFile(written)
			if err != nil {
				return err
			}
			line, column := atoi(found[2]), atoi(found[3])
			lines := bytes.SplitAfter(text, []byte("\n"))
			before := append(bytes.Join(lines[:line-1], nil), lines[line-1][:column-1]...)
			near := number.FindAllSubmatch(before, -1)
			if len(near) == 0 {
				continue
			}
			n := atoi(string(near[len(near)-1][1]))
			left := len(p.mutants)
			p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool { return m.number == n })
			dropped += left - len(p.mutants)
			if err := p.write(t.dir, replace); err != nil {
				return err
			}
		}
	}
	if dropped == 0 {
		return errors.New("no mutant stands where the compiler found an error")
	}
	return nil
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0 // the expression has matched digits
	}
	return n
}

// program compiles a package's tests and runs them without a mutant.
func (t *tests) program(ctx context.Context, p *pkg) (*program, error) {
	if have, ok := t.of[p.ImportPath]; ok {
		return have, nil
	}
	made := &program{pkg: p, path: filepath.Join(t.dir, strings.ReplaceAll(p.path(), "/", "-")+".test")}
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-overlay", t.overlay, "-o", made.path, p.ImportPath}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the tests of %s: %w: %s", p.path(), err, out)
	}
	hits := made.path + ".hits"
	if err := os.WriteFile(hits, nil, 0o600); err != nil {
		return nil, err
	}
	began := time.Now()
	if out, err := made.command(ctx, "MUTANT_HITS="+hits).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("run the tests of %s without a mutant: %w: %s", p.path(), err, out)
	}
	made.limit = 5*time.Since(began) + 10*time.Second
	text, err := os.ReadFile(hits)
	if err != nil {
		return nil, err
	}
	made.reached = map[string]bool{}
	for id := range strings.FieldsSeq(string(text)) {
		made.reached[id] = true
	}
	t.of[p.ImportPath] = made
	return made, nil
}

func (p *program) command(ctx context.Context, env string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, "-test.failfast", "-test.short=false")
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.pkg.Dir, append(os.Environ(), env), time.Second
	return cmd
}

// notices reports whether the tests fail, or do not end, with a mutant.
func (p *program) notices(ctx context.Context, m *mutant) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	err := p.command(limited, "MUTANT="+m.id()).Run()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil && limited.Err() == nil && !errors.As(err, new(*exec.ExitError)) {
		return false, fmt.Errorf("run the tests of %s: %w", p.pkg.path(), err)
	}
	return err != nil, nil
}
