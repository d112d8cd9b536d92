package pmksched

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/pmk-sched/pmk-sched"

// goList runs `go list` with the given arguments and returns its lines.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

// architecture is the document whose table lists every package and the packages that it may import.
const architecture = "docs/architecture.md"

// packageRow is one row of the table: a package, or a pattern that ends in `/*`.
type packageRow struct {
	room    string // the heading above the table
	pattern string
	grants  []string // packages of this module by path in it, others by import path; patterns too
}

// readArchitecture returns the rows of the table. Its columns are the package, its purpose and the
// packages that it may import.
func readArchitecture(t *testing.T) []packageRow {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([^`]+)`")
	var rows []packageRow
	room := ""
	for _, line := range strings.Split(string(text), "\n") {
		if heading, found := strings.CutPrefix(line, "### "); found {
			room = heading
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
			continue
		}
		row := packageRow{room: room, pattern: strings.Trim(strings.TrimSpace(cells[0]), "`")}
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			row.grants = append(row.grants, m[1])
		}
		if len(row.grants) == 0 && strings.TrimSpace(cells[2]) != "nothing" {
			t.Errorf("%s: row %s: the last column lists no package and is not \"nothing\"", architecture, row.pattern)
		}
		if strings.TrimSpace(cells[1]) == "" {
			t.Errorf("%s: row %s does not say what the package is for", architecture, row.pattern)
		}
		rows = append(rows, row)
	}
	return rows
}

// matches reports whether a package is the one of a pattern or, for `dir/*`, directly below its
// directory.
func matches(pattern, pkg string) bool {
	dir, below := strings.CutSuffix(pattern, "/*")
	return pattern == pkg || below && path.Dir(pkg) == dir
}

// readImports returns, for each package of this module below its root and outside test/, the
// packages that its files import apart from the standard library's: files for other platforms and
// releases included, tests not.
func readImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && entry.IsDir() && file != "." {
			return fs.SkipDir // another module
		}
		if entry.IsDir() && file != "." &&
			(file == "test" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Dir(file) == "." || !strings.HasSuffix(base, ".go") ||
			strings.HasSuffix(base, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var names []string
		for _, spec := range parsed.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); external(imported) {
				names = append(names, strings.TrimPrefix(imported, modulePath+"/"))
			}
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		imports[pkg] = append(imports[pkg], names...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func TestArchitectureListsThePackagesAndTheirImports(t *testing.T) {
	rows, imports := readArchitecture(t), readImports(t)
	used := map[string]bool{} // row and grant
	for pkg, list := range imports {
		slices.Sort(list)
		at := slices.IndexFunc(rows, func(r packageRow) bool { return matches(r.pattern, pkg) })
		if at < 0 {
			t.Errorf("package %s has no row in %s", pkg, architecture)
			continue
		}
		used[rows[at].pattern] = true
		for _, imported := range slices.Compact(list) {
			grant := slices.IndexFunc(rows[at].grants, func(g string) bool {
				return matches(g, imported) || external(g) && strings.HasPrefix(imported+"/", g+"/")
			})
			switch {
			case grant >= 0:
				used[rows[at].pattern+" "+rows[at].grants[grant]] = true
			case !external(imported):
				t.Errorf("%s imports %s, which its row in %s does not list", pkg, imported, architecture)
			}
		}
	}
	for _, row := range rows {
		if !used[row.pattern] {
			t.Errorf("%s has a row for %s, but no such package exists", architecture, row.pattern)
			continue
		}
		for _, grant := range row.grants {
			if !used[row.pattern+" "+grant] {
				t.Errorf("%s lists %s for %s, which does not import it", architecture, grant, row.pattern)
			}
		}
	}
}

// The rooms are ordered from the commands down: no package imports one of a room above its own.
func TestRoomsImportDownwards(t *testing.T) {
	rows := readArchitecture(t)
	var rooms []string
	for _, row := range rows {
		if !slices.Contains(rooms, row.room) {
			rooms = append(rooms, row.room)
		}
	}
	if len(rooms) < 9 {
		t.Fatalf("%s has the rooms %q, want a heading for each room", architecture, rooms)
	}
	roomOf := func(pkg string) int {
		at := slices.IndexFunc(rows, func(r packageRow) bool { return matches(r.pattern, pkg) })
		if at < 0 {
			return -1 // reported by TestArchitectureListsThePackagesAndTheirImports
		}
		return slices.Index(rooms, rows[at].room)
	}
	for pkg, list := range readImports(t) {
		from := roomOf(pkg)
		for _, imported := range list {
			if to := roomOf(imported); to >= 0 && to < from {
				t.Errorf("%s of room %q imports %s of room %q, which is above it", pkg, rooms[from], imported, rooms[to])
			}
		}
	}
}

// external reports whether a path is of another module.
func external(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".")
}

// The installer stays quick to build because it never links Kubernetes itself.
func TestInstallerDoesNotLinkKubernetes(t *testing.T) {
	for _, pkg := range goList(t, "-deps", "./cmd/pmk-sched") {
		if pkg == "k8s.io/kubernetes" || strings.HasPrefix(pkg, "k8s.io/kubernetes/") {
			t.Errorf("cmd/pmk-sched links %s", pkg)
		}
	}
}

// A portable plugin does not depend on a release's framework: only the adapter does.
func TestPortablePluginsDoNotLinkAFramework(t *testing.T) {
	framework := regexp.MustCompile(`^k8s\.io/(kubernetes|kube-scheduler)(/|$)`)
	for _, pkg := range goList(t, "-deps", "./scheduler", "./scheduler/plugintest", "./scheduler/plugins/...") {
		if framework.MatchString(pkg) {
			t.Errorf("a portable package links %s", pkg)
		}
	}
}

// Pure packages do no I/O: neither the operating system, nor the network, nor a client.
func TestPurePackagesDoNoIO(t *testing.T) {
	denied := regexp.MustCompile(`^(os|os/.*|net|net/http|io/ioutil|syscall|k8s\.io/client-go(/.*)?)$`)
	for _, pkg := range []string{"versions", "rbac", "api/v1alpha1", "profiles", "profiles/node", "profiles/schema",
		"profiles/convert", "profiles/policy", "profiles/validate", "internal/deploy/helm", "internal/deploy/health",
		"internal/deploy/manifest", "internal/foresight/snapshot", "internal/foresight/snapshot/archive",
		"internal/foresight/snapshot/openb", "internal/foresight/simulate/scenario", "internal/foresight/simulate/report",
		"internal/foresight/page", "internal/foresight/simulate/decision", "internal/foresight/bench",
		"internal/foresight/preemption"} {
		for _, imported := range goList(t, "-f", `{{join .Imports "\n"}}`, "./"+pkg) {
			if denied.MatchString(imported) {
				t.Errorf("pure package %s imports %s", pkg, imported)
			}
		}
	}
}

// A difference between releases is a field of versions.Rules, with the fact and its range.
func TestOnlyVersionsComparesMinorReleases(t *testing.T) {
	refuseInProduct(t, regexp.MustCompile(`[mM]inor(\(\))? *(>=|<=|>|<|==|!=) *[1-9]`),
		"compares minor releases: add a field to versions.Rules", "versions/")
}

// Only internal/artifact/build runs `go` for users, and hack/mutants for tests: every other call of
// the toolchain would escape its hermetic environment.
func TestOnlyBuildRunsTheGoCommand(t *testing.T) {
	refuseInProduct(t, regexp.MustCompile(`exec\.Command(Context)?\((ctx, ?)?"go"`), "runs the go command",
		"internal/artifact/build/", "hack/mutants/")
}

// refuseInProduct fails for files outside allowed that contain a pattern and are not tests.
func refuseInProduct(t *testing.T, pattern *regexp.Regexp, problem string, allowed ...string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			slices.ContainsFunc(append(allowed, "test/"), func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := pattern.Find(source); found != nil {
			t.Errorf("%s %s: %s", path, problem, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
