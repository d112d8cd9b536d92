package build

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
)

// pluginsFile registers the plugins, beside the generated main.
const pluginsFile = "cmd/kube-scheduler/plugins.go"

// pluginVersion stands for the version of a module that is a folder.
const pluginVersion = "v0.0.0"

// pluginsSource registers native plugins as they are, and portable ones by way of
// the adapter: see the documentation of package scheduler/adapter.
var pluginsSource = template.Must(template.New(pluginsFile).Parse(`package main

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

// plugins are compiled in beside those of the release.
func plugins() []app.Option {
	return []app.Option{
{{- range .Plugins}}
{{- if .Structs}}
		app.WithPlugin({{.Alias}}.Name, adapter.Factory({{.Alias}}.Name, new{{.Type}})),
{{- else}}
		app.WithPlugin({{.Alias}}.Name, {{.Alias}}.New),
{{- end}}
{{- end}}
	}
}
{{- range $p := .Plugins}}
{{- if .Structs}}

// {{.Type}} is {{.Path}} at the extension points that it has.
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

// registration is one plugin in the generated source.
type registration struct {
	Alias, Path, Type string
	// Structs are the pieces of a portable plugin; none for a native one.
	Structs []string
}

// registrations returns the source that registers the plugins.
func (s *pluginSet) registrations() ([]byte, error) {
	data := struct {
		Adapter string
		Plugins []registration
		Imports []string
	}{Imports: s.imports}
	for i, p := range s.plugins {
		if p.info.Kind == KindPortable {
			data.Adapter = apiModule + "/" + adapterFolder
		}
		data.Plugins = append(data.Plugins, registration{
			Alias: fmt.Sprintf("plugin%d", i), Path: p.info.Package, Type: fmt.Sprintf("Portable%d", i), Structs: p.made.Structs,
		})
	}
	var text bytes.Buffer
	if err := pluginsSource.Execute(&text, data); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// addTo adds the plugins to the generated module of a release: the source that
// registers them, and their modules as folders of it.
func (s *pluginSet) addTo(files map[string][]byte, from source, used toolchain) error {
	if s == nil {
		return nil
	}
	source, err := s.registrations()
	if err != nil {
		return err
	}
	files[pluginsFile] = source
	var sums strings.Builder
	sums.Write(files["go.sum"])
	held := s.heldBy(from)
	for _, m := range s.modules {
		for name, data := range m.files {
			files[m.folder+"/"+name] = data
		}
		files[m.folder+"/go.mod"] = m.modfile(languageFor(m.mod.Go, from, used), held)
		sums.WriteString(m.sums)
	}
	files["go.sum"] = sortedLines(sums.String())
	if s.api == nil {
		return nil
	}
	for name, data := range s.apiFiles() {
		files[generatedAPI+"/"+name] = data
	}
	files[generatedAPI+"/go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n", apiModule, languageFor(nil, from, used))
	return nil
}

// languageFor returns the version of the language that a plugin's module is
// compiled as: its own, unless the release's toolchain is older. From Go 1.21
// on no module may be newer than the main one.
func languageFor(own *modfile.Go, from source, used toolchain) string {
	most := from.GoDirective
	if compareGo(used.Used, oldestGo) < 0 && own != nil || most == "" {
		most = goMinor(used.Used)
	}
	if own != nil && compareGo(own.Version, most) < 0 {
		return own.Version
	}
	return most
}

// modfile returns the module's go.mod as every toolchain can read it: its path
// and requirements, without those that the release holds. Asking for another
// version of these would change no source, but the version that binaries and
// stack traces name, and with it every compiled package.
func (m *pluginModule) modfile(language string, held map[string]string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ngo %s\n", modfile.AutoQuote(m.path), language)
	for _, r := range m.mod.Require {
		if held[r.Mod.Path] != "" {
			continue
		}
		fmt.Fprintf(&text, "\nrequire %s %s\n", r.Mod.Path, r.Mod.Version)
	}
	return []byte(text.String())
}

// moduleParts are the lines that plugins add to the generated go.mod.
type moduleParts struct{ requires, replaces []string }

// parts returns the lines for go.mod. Every module that the release's own go.mod
// names is held to the release's version, so that no plugin can move it; what a
// plugin's go.mod replaces besides is replaced as its author did.
func (s *pluginSet) parts(from source, pinned []pin) moduleParts {
	var parts moduleParts
	if s == nil {
		return parts
	}
	held := map[string]bool{}
	for _, p := range pinned {
		held[p.Path] = held[p.Path] || p.Version == ""
	}
	hold := func(old, to string) {
		parts.replaces = append(parts.replaces, old+" => "+to)
		held[old] = true
	}
	if s.api != nil {
		parts.requires = append(parts.requires, apiModule+" "+pluginVersion)
		hold(apiModule, "./"+generatedAPI)
	}
	for _, m := range s.modules {
		parts.requires = append(parts.requires, m.path+" "+pluginVersion)
		hold(m.path, "./"+m.folder)
	}
	for _, required := range from.Required {
		if !held[required.Path] && !slices.Contains(from.Staging, required.Path) {
			hold(required.Path, required.Path+" "+required.Version)
		}
	}
	for _, m := range s.modules {
		for _, r := range m.mod.Replace {
			if r.New.Version != "" && !held[r.Old.Path] {
				hold(r.Old.Path, r.New.Path+" "+r.New.Version)
			}
		}
	}
	slices.Sort(parts.requires)
	slices.Sort(parts.replaces)
	return parts
}
