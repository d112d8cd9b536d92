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

// architecture is the document with the rooms, the rooms that each imports, and the packages.
const architecture = "docs/architecture.md"

// roomRow is a room and the rooms that its row lists; row is the number of the row.
type roomRow struct {
	row     int
	imports []string
}

// readArchitecture returns the rows of the table of rooms, by room, and the packages of the list:
// paths, or patterns that end in `/*`.
func readArchitecture(t *testing.T) (rooms map[string]roomRow, packages []string) {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (all []string) {
		for _, m := range name.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
		return all
	}
	rooms = map[string]roomRow{}
	row := 0
	for _, line := range strings.Split(string(text), "\n") {
		if item, found := strings.CutPrefix(line, "- `"); found {
			pkg, purpose, _ := strings.Cut(item, "`: ")
			if packages = append(packages, pkg); purpose == "" {
				t.Errorf("%s does not say what package %s is for", architecture, pkg)
			}
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) != 2 {
			continue
		}
		row++
		for _, room := range names(cells[0]) {
			rooms[room] = roomRow{row: row, imports: names(cells[1])}
		}
	}
	return rooms, packages
}

// roomOf returns the room of a package, or "".
func roomOf(rooms map[string]roomRow, pkg string) string {
	for room := range rooms {
		if pkg == room || strings.HasPrefix(pkg, room+"/") {
			return room
		}
	}
	return ""
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

func TestArchitectureListsThePackages(t *testing.T) {
	_, packages := readArchitecture(t)
	used := map[string]bool{}
	for pkg := range readImports(t) {
		at := slices.IndexFunc(packages, func(pattern string) bool { return matches(pattern, pkg) })
		if at < 0 {
			t.Errorf("package %s is not in the list of %s", pkg, architecture)
			continue
		}
		used[packages[at]] = true
	}
	for _, pattern := range packages {
		if !used[pattern] {
			t.Errorf("%s lists %s, which does not exist", architecture, pattern)
		}
	}
}

// A package imports packages from its own room and from rooms in its room's row. The row for cmd
// lists rooms that it does not import.
func TestRoomsImportWhatTheirRowLists(t *testing.T) {
	rooms, _ := readArchitecture(t)
	used := map[string]bool{} // room and imported room
	for pkg, list := range readImports(t) {
		room := roomOf(rooms, pkg)
		if room == "" {
			t.Errorf("package %s is in no room of %s", pkg, architecture)
		}
		for _, imported := range list {
			to := roomOf(rooms, imported)
			listed := slices.Contains(rooms[room].imports, to)
			if external(imported) || to == room || room == "cmd" && !listed {
				continue
			}
			if used[room+" "+to] = true; !listed || room == "cmd" {
				t.Errorf("%s imports %s, which the row of room %q in %s does not allow", pkg, imported, room, architecture)
			}
		}
	}
	for room, row := range rooms {
		for _, to := range row.imports {
			switch {
			case rooms[to].row <= row.row && room != "cmd":
				t.Errorf("%s: room %q imports room %q, which is not below it", architecture, room, to)
			case !used[room+" "+to] && room != "cmd":
				t.Errorf("%s: no package of room %q imports one of room %q", architecture, room, to)
			}
		}
	}
}

// external reports whether a path is of another module.
func external(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return strings.Contains(first, ".")
}

// The installer stays quick to build because it never links Kubernetes itself. Labs have a program
// of their own: the installer runs as root on control planes.
func TestInstallerLinksNeitherKubernetesNorLabs(t *testing.T) {
	for _, pkg := range goList(t, "-deps", "./cmd/pmk-sched") {
		for _, refused := range []string{"k8s.io/kubernetes", modulePath + "/internal/lab"} {
			if pkg == refused || strings.HasPrefix(pkg, refused+"/") {
				t.Errorf("cmd/pmk-sched links %s", pkg)
			}
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

// Pure packages do no I/O: neither the operating system, nor the network, nor a client. The last
// three simulate, and leave all I/O to package simulate.
func TestPurePackagesDoNoIO(t *testing.T) {
	denied := regexp.MustCompile(`^(os|os/.*|net|net/http|io/ioutil|syscall|k8s\.io/client-go(/.*)?)$`)
	for _, pkg := range []string{"versions", "rbac", "api/v1alpha1", "profiles", "profiles/node", "profiles/schema",
		"profiles/convert", "profiles/policy", "profiles/validate", "internal/deploy/health", "internal/deploy/render",
		"internal/deploy/manifest", "internal/foresight/snapshot", "internal/foresight/snapshot/archive",
		"internal/foresight/snapshot/openb", "internal/foresight/simulate/scenario", "internal/foresight/simulate/report",
		"internal/foresight/page", "internal/rollout/stage",
		"internal/foresight/simulate/decision", "internal/foresight/bench", "internal/foresight/preemption"} {
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
