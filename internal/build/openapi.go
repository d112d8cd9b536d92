package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Until 1.23 the OpenAPI definitions that kube-apiserver serves and applies with
// (pkg/generated/openapi/zz_generated.openapi.go) are not part of its module:
// upstream's make writes them before it compiles. They are generated here with
// the release's own openapi-gen. Nothing can be added to a package of another
// module, and the oldest Go that is needed (1.15) has no -overlay, so the one
// package that imports the definitions, and the main above it, are taken into
// the generated module beside them.
const (
	kubeAPIServer    = "kube-apiserver"
	apiserverFolder  = "cmd/kube-apiserver"
	apiserverPackage = generatedModule + "/" + apiserverFolder
	appPackage       = kubernetes + "/" + apiserverFolder + "/app"
	openAPIPackage   = kubernetes + "/pkg/generated/openapi"
	openAPIFolder    = apiserverFolder + "/openapi"
	openAPIFile      = "zz_generated.openapi"
	openAPIGenerator = "k8s.io/kube-openapi/cmd/openapi-gen"
)

// openAPIFormat is raised when the way of generating changes what comes out.
const openAPIFormat = 1

// openAPITag marks a package whose types have OpenAPI definitions.
var openAPITag = []byte("+k8s:openapi-gen=")

// needsOpenAPI refuses the kube-apiserver of 1.20–1.23 from a tree: what is
// generated for a module would have to be written into the tree.
func needsOpenAPI(release versions.Release) *Error {
	return &Error{
		Step: "build kube-apiserver " + release.String(), Cause: CauseInput,
		Message: "a tree of a release before 1.24 does not hold all of the source of its kube-apiserver",
		Try:     "leave the source out to build it from the Go modules",
	}
}

// addAPIServer puts kube-apiserver and its OpenAPI definitions into the
// generated module.
func (k kubernetesBuild) addAPIServer(ctx context.Context, r *recipe, ready *prepared) error {
	step := "generate the OpenAPI definitions of " + k.release.String()
	return k.step(step, func() error {
		g := openAPI{job: k.job, recipe: r, ready: ready, step: step}
		found, err := g.packages(ctx)
		if err != nil {
			return err
		}
		if err := g.copyAPIServer(found); err != nil {
			return storage(ctx, step, err)
		}
		return g.generate(ctx, found)
	})
}

// openAPI generates the definitions for one generated module.
type openAPI struct {
	*job
	recipe *recipe
	ready  *prepared
	step   string
}

// packageFolder is a package and where its source lies.
type packageFolder struct{ path, dir string }

// packages returns every package that is linked into kube-apiserver.
func (g openAPI) packages(ctx context.Context) ([]packageFolder, error) {
	args := append([]string{"list", "-deps", "-f", "{{.ImportPath}}\t{{.Dir}}", "-tags", g.recipe.tags}, modFlag(g.recipe)...)
	out, err := g.goRun(ctx, g.recipe, g.ready, Host(), append(args, kubernetes+"/"+apiserverFolder))
	if err != nil {
		return nil, failure(ctx, g.step, out.tail, err)
	}
	var found []packageFolder
	for line := range strings.Lines(string(out.stdout)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			found = append(found, packageFolder{path, dir})
		}
	}
	return found, nil
}

// copyAPIServer takes the two packages into the generated module and turns their
// imports to what is in it.
func (g openAPI) copyAPIServer(all []packageFolder) error {
	imports := strings.NewReplacer(
		`"`+appPackage+`"`, `"`+apiserverPackage+`/app"`,
		`"`+openAPIPackage+`"`, `"`+generatedModule+"/"+openAPIFolder+`"`,
	)
	for _, p := range all {
		name, found := strings.CutPrefix(p.path, kubernetes+"/")
		if !found || name != apiserverFolder && p.path != appPackage {
			continue
		}
		if err := copySources(p.dir, filepath.Join(g.ready.dir, filepath.FromSlash(name)), imports); err != nil {
			return err
		}
	}
	return nil
}

// copySources copies the Go files of a package, without tests.
func copySources(from, to string, imports *strings.Replacer) error {
	files, err := sources(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), []byte(imports.Replace(string(data))), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sources(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") }), err
}

// tagged returns the packages with types that have definitions. Upstream asks
// the whole tree; what is not linked in can never be asked for.
func (g openAPI) tagged(all []packageFolder) ([]string, error) {
	var found []string
	for _, p := range all {
		if !strings.HasPrefix(p.path, "k8s.io/") {
			continue
		}
		files, err := sources(p.dir)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if bytes.Contains(data, openAPITag) {
				found = append(found, p.path)
				break
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// generate builds the release's openapi-gen and runs it. It looks packages up
// with the go command that is first on PATH, which has to be the recipe's own.
func (g openAPI) generate(ctx context.Context, all []packageFolder) error {
	inputs, err := g.tagged(all)
	if err != nil {
		return storage(ctx, g.step, err)
	}
	generator := filepath.Join(g.space.tmp, "openapi-gen")
	args := append([]string{"build"}, modFlag(g.recipe)...)
	out, err := g.goRun(ctx, g.recipe, g.ready, Host(), append(args, "-o", generator, openAPIGenerator))
	if err != nil {
		return failure(ctx, g.step, out.tail, err)
	}
	if out, err = g.goRun(ctx, g.recipe, g.ready, Host(), []string{"env", "GOROOT"}); err != nil {
		return failure(ctx, g.step, out.tail, err)
	}
	goroot := strings.TrimSpace(string(out.stdout))
	header := filepath.Join(g.space.tmp, "header.txt")
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		return storage(ctx, g.step, err)
	}
	output := filepath.Join(g.space.tmp, "openapi")
	out, err = g.run(ctx, command{
		path: generator, dir: g.ready.dir,
		args: []string{
			"--input-dirs", strings.Join(inputs, ","), "--output-package", generatedModule + "/" + openAPIFolder,
			"--output-base", output, "--output-file-base", openAPIFile,
			"--go-header-file", header, "--report-filename", filepath.Join(g.space.tmp, "openapi-report"),
		},
		env: g.environmentOf(goroot),
	})
	if err != nil {
		return failure(ctx, g.step, out.tail, err)
	}
	return g.take(ctx, filepath.Join(output, generatedModule, filepath.FromSlash(openAPIFolder), openAPIFile+".go"))
}

// environmentOf is the environment in which the generator finds packages.
func (g openAPI) environmentOf(goroot string) []string {
	env := slices.Clone(g.golang.base)
	return append(env,
		"PATH="+filepath.Join(goroot, "bin")+string(filepath.ListSeparator)+lookup(env, "PATH"),
		"GOROOT="+goroot, "GOTOOLCHAIN=local", "GOWORK="+g.ready.workspace,
		"GOFLAGS="+strings.TrimSpace(lookup(env, "GOFLAGS")+" "+strings.Join(modFlag(g.recipe), " ")))
}

// take moves the generated file to its place.
func (g openAPI) take(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return storage(ctx, g.step, fmt.Errorf("read what openapi-gen made: %w", err))
	}
	place := filepath.Join(g.ready.dir, filepath.FromSlash(openAPIFolder), openAPIFile+".go")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return storage(ctx, g.step, err)
	}
	if err := os.WriteFile(place, data, 0o644); err != nil {
		return storage(ctx, g.step, err)
	}
	return nil
}
