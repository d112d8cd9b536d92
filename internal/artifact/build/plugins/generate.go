package plugins

import (
	"bytes"
	"fmt"
	"go/format"
	goversion "go/version"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
)

// pluginVersion is the version of a module that is a directory.
const pluginVersion = "v0.0.0"

// pluginsSource registers native plugins unchanged and portable plugins through the release's
// adapter: see the documentation of package scheduler/adapter.
var pluginsSource = template.Must(template.New("plugins.go").Parse(`package main

import (
{{- if .Adapter}}
	"context"

	"{{.Adapter}}"
{{- end}}
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
{{range .Plugins}}
	{{.Alias}} "{{.Path}}"
{{- end}}
{{- range .Imports}}
	_ "{{.}}"
{{- end}}
)

// plugins returns the plugins that are compiled in, in addition to the in-tree plugins of the
// release.
func plugins() []app.Option {
	return []app.Option{
{{- range .Plugins}}
{{- if .Structs}}
{{- if .Name}}
		app.WithPlugin("{{.Name}}", adapter.Renamed("{{.Name}}", {{.Alias}}.Name, new{{.Type}})),
{{- else}}
		app.WithPlugin({{.Alias}}.Name, adapter.Factory({{.Alias}}.Name, new{{.Type}})),
{{- end}}
{{- else}}
		app.WithPlugin({{.Alias}}.Name, {{.Alias}}.New),
{{- end}}
{{- end}}
	}
}
{{- range $p := .Plugins}}
{{- if .Structs}}

// {{.Type}} binds {{.Path}}.
type {{.Type}} struct {
	adapter.Base
{{- range .Structs}}
	adapter.{{.}}
{{- end}}
}

func new{{.Type}}(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
	p, err := {{.Alias}}.New(ctx, host.Arguments, host)
	if err != nil {
		return nil, err
	}
	return &{{.Type}}{
		Base: host.Base(p),
{{- range .Structs}}
		{{.}}: adapter.{{.}}{Host: host, Plugin: p},
{{- end}}
	}, nil
}
{{- end}}
{{- end}}
`))

type registration struct {
	Alias, Path, Type string
	// Name is the name of a plugin that is not registered by its constant Name.
	Name string
	// Structs are the adapter types that a portable plugin is composed of. A native plugin has none.
	Structs []string
}

// Registrations returns the source file that registers the plugins in a kube-scheduler.
func (s *Set) Registrations() ([]byte, error) {
	data := struct {
		Adapter string
		Plugins []registration
		Imports []string
	}{Imports: s.imports}
	for i, p := range s.plugins {
		if p.info.Kind == KindPortable {
			data.Adapter = APIModule + "/" + adapterDir
		}
		data.Plugins = append(data.Plugins, registration{
			Alias: fmt.Sprintf("plugin%d", i), Path: p.info.Package, Type: fmt.Sprintf("Portable%d", i), Name: p.given.Name,
			Structs: p.composition.Structs,
		})
	}
	var text bytes.Buffer
	if err := pluginsSource.Execute(&text, data); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// ModuleFiles returns the plugins' modules as directories in the generated module.
func (s *Set) ModuleFiles(t Target) map[string][]byte {
	files := map[string][]byte{}
	for _, m := range s.modules {
		for name, data := range m.files {
			files[m.dir+"/"+name] = data
		}
		files[m.dir+"/go.mod"] = m.goMod(t)
	}
	return files
}

// OldestGo is the first release of Go whose command downloads another toolchain when GOTOOLCHAIN
// names it.
const OldestGo = "1.21"

// language returns the Go version of a plugin's go.mod: its own, unless the release's toolchain is
// older. From Go 1.21 on no module may be newer than the main one.
func (t Target) language(own *modfile.Go) string {
	most := t.GoDirective
	if goversion.Compare("go"+t.Go, "go"+OldestGo) < 0 && own != nil || most == "" {
		most = strings.TrimPrefix(goversion.Lang("go"+t.Go), "go")
	}
	if own != nil && goversion.Compare("go"+own.Version, "go"+most) < 0 {
		return own.Version
	}
	return most
}

// goMod returns the module's go.mod in a form that every toolchain reads: its path and
// requirements, without the modules whose version the target fixes. To require another version of
// those would change no source, but it would change the version in binaries and stack traces, and
// so every compiled package.
func (m *pluginModule) goMod(t Target) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ngo %s\n", modfile.AutoQuote(m.path), t.language(m.mod.Go))
	for _, r := range m.mod.Require {
		if t.Versions[r.Mod.Path] != "" {
			continue
		}
		fmt.Fprintf(&text, "\nrequire %s %s\n", r.Mod.Path, r.Mod.Version)
	}
	return []byte(text.String())
}

// Directives returns the require and replace directives that the plugins add to the generated
// go.mod. Every module that the target's own go.mod requires is replaced with the target's version,
// so that no plugin can change it. Other replace directives of a plugin's go.mod are kept.
func (s *Set) Directives(t Target) (requires, replaces []string) {
	if s.Empty() {
		return nil, nil
	}
	replaced := map[string]bool{}
	for _, path := range t.Replaced {
		replaced[path] = true
	}
	replace := func(old, with string) {
		replaces = append(replaces, old+" => "+with)
		replaced[old] = true
	}
	if s.api != nil {
		requires = append(requires, APIModule+" "+pluginVersion)
		replace(APIModule, "./"+APIDir)
	}
	for _, m := range s.modules {
		requires = append(requires, m.path+" "+pluginVersion)
		replace(m.path, "./"+m.dir)
	}
	for _, required := range t.Required {
		if !replaced[required.Path] {
			replace(required.Path, required.Path+" "+required.Version)
		}
	}
	for _, m := range s.modules {
		for _, r := range m.mod.Replace {
			if r.New.Version != "" && !replaced[r.Old.Path] {
				replace(r.Old.Path, r.New.Path+" "+r.New.Version)
			}
		}
	}
	slices.Sort(requires)
	slices.Sort(replaces)
	return requires, replaces
}
