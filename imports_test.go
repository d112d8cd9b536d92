package pmksched

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const modulePath = "github.com/pmk-sched/pmk-sched"

// allowed lists, for each package of this module, the packages of this module that it may import.
// An arrow that is not here is a change of the architecture: see docs/architecture.md.
var allowed = map[string][]string{
	"versions":                       {},
	"rbac":                           {},
	"profiles":                       {"versions"},
	"internal/problem":               {},
	"internal/kubeapi":               {"internal/clock"},
	"internal/certificates":          {},
	"internal/cluster":               {"internal/kubeapi", "versions"},
	"internal/build":                 {"scheduler/adapter", "versions"},
	"internal/image":                 {},
	"internal/manifest":              {"profiles", "rbac", "versions"},
	"internal/apply":                 {"internal/kubeapi"},
	"internal/clock":                 {},
	"internal/preflight":             {"internal/kubeapi", "internal/problem"},
	"internal/verify":                {"internal/clock", "internal/kubeapi"},
	"internal/staticpod":             {"internal/kubeapi"},
	"internal/helm":                  {},
	"internal/lab":                   {"internal/build", "internal/image", "versions"},
	"internal/install":               {"internal/apply", "internal/build", "internal/certificates", "internal/cluster", "internal/helm", "internal/image", "internal/kubeapi", "internal/manifest", "internal/staticpod", "profiles", "rbac", "versions"},
	"scheduler/plugins/blockall":     {"scheduler"},
	"scheduler/plugins/timestamp":    {"scheduler"},
	"scheduler/plugins/loadaware":    {"scheduler"},
	"scheduler/plugins/networkaware": {"scheduler"},
	"scheduler":                      {},
	"scheduler/adapter":              {},
	"scheduler/adapter/host":         {"scheduler", "scheduler/adapter"},
	"scheduler/adapter/f":            {"scheduler", "scheduler/adapter/host"},
	"scheduler/plugintest":           {"scheduler"},
	"scheduler/extender":             {"scheduler"},
	"cmd/pmk-scheduler":              {"scheduler/adapter/f", "scheduler/plugins/blockall", "scheduler/plugins/loadaware", "scheduler/plugins/networkaware", "scheduler/plugins/timestamp"},
}

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

func TestPackagesImportOnlyWhatTheArchitectureAllows(t *testing.T) {
	for pkg, may := range allowed {
		permitted := map[string]bool{}
		for _, m := range may {
			permitted[modulePath+"/"+m] = true
		}
		for _, imported := range goList(t, "-f", `{{join .Imports "\n"}}`, "./"+pkg) {
			if strings.HasPrefix(imported, modulePath) && !permitted[imported] {
				t.Errorf("%s imports %s, which is not among its allowed imports %v", pkg, imported, may)
			}
		}
	}
}

func TestEveryPackageHasItsPlaceInTheArchitecture(t *testing.T) {
	programsAndTests := regexp.MustCompile(`^(cmd|test)/`)
	for _, pkg := range goList(t, "./...") {
		rel := strings.TrimPrefix(pkg, modulePath+"/")
		if _, ok := allowed[rel]; !ok && pkg != modulePath && !programsAndTests.MatchString(rel) {
			t.Errorf("package %s has no row in the table of allowed imports", rel)
		}
	}
}

// The installer stays quick to build because it never links Kubernetes itself.
func TestInstallerDoesNotLinkKubernetes(t *testing.T) {
	for _, pkg := range goList(t, "-deps", "./cmd/pmk-sched") {
		if pkg == "k8s.io/kubernetes" || strings.HasPrefix(pkg, "k8s.io/kubernetes/") {
			t.Errorf("cmd/pmk-sched links %s", pkg)
		}
	}
}

// A portable plugin knows nothing of any release's framework: only the adapters do.
func TestPortablePluginsDoNotLinkAFramework(t *testing.T) {
	framework := regexp.MustCompile(`^k8s\.io/(kubernetes|kube-scheduler)(/|$)`)
	for _, pkg := range goList(t, "-deps", "./scheduler", "./scheduler/adapter", "./scheduler/adapter/host", "./scheduler/plugintest", "./scheduler/plugins/...") {
		if framework.MatchString(pkg) {
			t.Errorf("a portable package links %s", pkg)
		}
	}
}

// Pure packages do no I/O: neither the operating system, nor the network, nor a client.
func TestPurePackagesDoNoIO(t *testing.T) {
	denied := regexp.MustCompile(`^(os|os/.*|net|net/http|io/ioutil|syscall|k8s\.io/client-go(/.*)?)$`)
	for _, pkg := range []string{"versions", "rbac", "profiles", "internal/helm", "internal/manifest"} {
		for _, imported := range goList(t, "-f", `{{join .Imports "\n"}}`, "./"+pkg) {
			if denied.MatchString(imported) {
				t.Errorf("pure package %s imports %s", pkg, imported)
			}
		}
	}
}

// Only internal/build runs `go`: every other call of the toolchain would escape its hermetic environment.
func TestOnlyBuildRunsTheGoCommand(t *testing.T) {
	runsGo := regexp.MustCompile(`exec\.Command(Context)?\((ctx, ?)?"go"`)
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "internal/build/") || strings.HasPrefix(path, "test/") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if runsGo.Match(source) {
			t.Errorf("%s runs the go command", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
