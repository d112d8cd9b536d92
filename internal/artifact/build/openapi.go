package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Until 1.23 kube-apiserver's OpenAPI definitions (pkg/generated/openapi/zz_generated.openapi.go)
// are not part of its module: upstream's make generates them before it compiles. Here the release's
// own openapi-gen generates them. Nothing can be added to a package of another module, and the
// oldest Go that is needed (1.15) has no -overlay, so the package that imports the definitions, and
// the main that imports that one, are copied to the generated module with them.
const (
	kubeAPIServer    = "kube-apiserver"
	apiserverDir     = "cmd/kube-apiserver"
	apiserverPackage = generatedModule + "/" + apiserverDir
	appPackage       = kubernetes + "/" + apiserverDir + "/app"
	openAPIPackage   = kubernetes + "/pkg/generated/openapi"
	openAPIDir       = apiserverDir + "/openapi"
	openAPIFile      = "zz_generated.openapi"
	openAPIGenerator = "k8s.io/kube-openapi/cmd/openapi-gen"
)

// openAPIFormat is raised when a change of this file changes the generated definitions.
const openAPIFormat = 1

// openAPITag marks a package whose types have OpenAPI definitions.
var openAPITag = []byte("+k8s:openapi-gen=")

// needsOpenAPI refuses the kube-apiserver of 1.20–1.23 from a tree: the definitions would have to
// be written to the tree.
func needsOpenAPI(release versions.Release) error {
	return problem.Invalidf("remove --source to build it from the Go modules",
		"build kube-apiserver %s: before 1.24 a tree does not contain all of its source", release)
}

// addAPIServer adds kube-apiserver and its OpenAPI definitions to the generated module.
func addAPIServer(ctx context.Context, c *compiler, release versions.Release, r *recipe, ready *prepared) error {
	step := "generate the OpenAPI definitions of " + release.String()
	return c.step(step, func() error {
		space, err := c.work.get(ctx)
		if err != nil {
			return err
		}
		g := openAPI{compiler: c, recipe: r, ready: ready, space: space, step: step}
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
	*compiler
	recipe *recipe
	ready  *prepared
	space  *workspace
	step   string
}

type packageDir struct{ path, dir string }

// packages returns every package that is linked into kube-apiserver.
func (g openAPI) packages(ctx context.Context) ([]packageDir, error) {
	args := append([]string{"list", "-deps", "-f", "{{.ImportPath}}\t{{.Dir}}", "-tags", g.recipe.tags},
		modFlag(g.recipe)...)
	out, err := g.goRun(ctx, g.recipe, g.ready, Host(), append(args, kubernetes+"/"+apiserverDir))
	if err != nil {
		return nil, failure(ctx, g.step, out.tail, err)
	}
	var found []packageDir
	for line := range strings.Lines(string(out.stdout)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			found = append(found, packageDir{path, dir})
		}
	}
	return found, nil
}

// copyAPIServer copies the two packages to the generated module and changes their imports.
func (g openAPI) copyAPIServer(all []packageDir) error {
	imports := strings.NewReplacer(
		`"`+appPackage+`"`, `"`+apiserverPackage+`/app"`,
		`"`+openAPIPackage+`"`, `"`+generatedModule+"/"+openAPIDir+`"`,
	)
	for _, p := range all {
		name, found := strings.CutPrefix(p.path, kubernetes+"/")
		if !found || name != apiserverDir && p.path != appPackage {
			continue
		}
		if err := copySources(p.dir, filepath.Join(g.ready.dir, filepath.FromSlash(name)), imports); err != nil {
			return err
		}
	}
	return nil
}

// copySources copies a package's Go files, without tests.
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
		data = []byte(imports.Replace(string(data)))
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sources(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") }), err
}

// taggedPackages returns the packages with types that have definitions. Upstream searches the whole
// tree; packages that are not linked in have no use.
func (g openAPI) taggedPackages(all []packageDir) ([]string, error) {
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

// generate builds the release's openapi-gen and runs it. openapi-gen finds packages with the first
// go command on PATH, which must be the recipe's go command.
func (g openAPI) generate(ctx context.Context, all []packageDir) error {
	inputs, err := g.taggedPackages(all)
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
			"--input-dirs", strings.Join(inputs, ","), "--output-package", generatedModule + "/" + openAPIDir,
			"--output-base", output, "--output-file-base", openAPIFile,
			"--go-header-file", header, "--report-filename", filepath.Join(g.space.tmp, "openapi-report"),
		},
		env: g.environment(goroot),
	})
	if err != nil {
		return failure(ctx, g.step, out.tail, err)
	}
	return g.store(ctx, filepath.Join(output, generatedModule, filepath.FromSlash(openAPIDir), openAPIFile+".go"))
}

// environment returns the environment in which the generator finds packages.
func (g openAPI) environment(goroot string) []string {
	env := slices.Clone(g.found.base)
	return append(env,
		"PATH="+filepath.Join(goroot, "bin")+string(filepath.ListSeparator)+lookup(env, "PATH"),
		"GOROOT="+goroot, "GOTOOLCHAIN=local", "GOWORK="+g.ready.workspace,
		"GOFLAGS="+strings.TrimSpace(lookup(env, "GOFLAGS")+" "+strings.Join(modFlag(g.recipe), " ")))
}

// store copies the generated file to the generated module.
func (g openAPI) store(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return storage(ctx, g.step, fmt.Errorf("read the output of openapi-gen: %w", err))
	}
	target := filepath.Join(g.ready.dir, filepath.FromSlash(openAPIDir), openAPIFile+".go")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return storage(ctx, g.step, err)
	}
	if err := os.WriteFile(target, data, 0o644); err != nil {
		return storage(ctx, g.step, err)
	}
	return nil
}
