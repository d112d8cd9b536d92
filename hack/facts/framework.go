package main

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

const (
	framework       = kubernetes + "/pkg/scheduler/framework"
	stagedFramework = staging + "/framework"
)

// interfaces returns the signatures of the framework's interfaces, by interface and method. Once
// plugin interfaces are staged, the remaining interfaces are internal.
func (s *source) interfaces() map[string]map[string]string {
	found, pkg := map[string]map[string]string{}, framework
	if s.exists(stagedFramework+"/interface.go") && strings.Contains(s.text(stagedFramework+"/interface.go"), filter) {
		pkg = stagedFramework
	}
	for _, file := range s.files(pkg) {
		maps.Copy(found, plugins.InterfaceForms(pkg, file))
	}
	maps.Copy(found, plugins.InterfaceForms(framework+"/runtime", s.file(framework+"/runtime/registry.go")))
	return found
}

const (
	// pluginInterface is the suffix of an extension point's interface name.
	pluginInterface = "Plugin"
	filter          = "type FilterPlugin interface"
)

// methodOwners are the interfaces with plugin methods that do not end in Plugin.
func methodOwners() []string {
	return []string{"PreFilterExtensions", "ScoreExtensions", "EnqueueExtensions", "PluginFactory"}
}

// checkMethods compares the signatures that native plugins must have, which are also the forms of
// the framework that scheduler/adapter binds.
func (c *comparison) checkMethods() {
	c.begin("methods of the scheduling framework",
		"internal/artifact/build/plugins/native.go, scheduler/adapter (files _fromNN, _beforeNN)")
	read := map[string]string{}
	for name, methods := range c.source.interfaces() {
		if slices.Contains(methodOwners(), name) || strings.HasSuffix(name, pluginInterface) && name != pluginInterface {
			maps.Copy(read, methods)
		}
	}
	known := plugins.MethodForms(c.facts.Minor)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(known[name], read[name]) {
			c.differ("from %s on: %s%s, the table has %s%s", c.minor(), name, read[name], name, strings.Join(known[name], ", "))
		}
	}
}

// checkInterfaces reports extension points that have no row.
func (c *comparison) checkInterfaces() {
	c.begin("extension points of the scheduling framework",
		"internal/artifact/build/binding/binding.go or profiles/schema/configuration_fields.go")
	var known []string
	for _, p := range plugins.Points() {
		known = append(known, p.Name)
	}
	api := c.api()
	for _, p := range schema.ExtensionPoints() {
		if (schema.Field{APIs: p.APIs, Since: p.Since}).In(api) {
			known = append(known, strings.ToUpper(p.Name[:1])+p.Name[1:])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.source.interfaces())) {
		point, is := strings.CutSuffix(name, pluginInterface)
		if is && point != "" && !slices.Contains(known, point) {
			c.differ("add from %s on: extension point %s (interface %s)", c.minor(), point, name)
		}
	}
}

const pluginPackages = framework + "/plugins"

// inTree is an in-tree plugin with its type's methods.
type inTree struct {
	name    string
	methods []string
}

// inTreePlugins returns the registry's plugins.
func (s *source) inTreePlugins() []inTree {
	var all []inTree
	registry := s.file(pluginPackages + "/registry.go")
	ast.Inspect(registry, func(n ast.Node) bool {
		entry, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := entry.Key.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := s.value(pluginPackages, registry, key)
		if x, ok := key.X.(*ast.Ident); ok && name != "" {
			all = append(all, inTree{name, s.pluginMethods(imported(registry, x.Name), name)})
		}
		return true
	})
	return all
}

// pluginMethods returns the methods in a package on the type whose method Name returns a plugin's
// name.
func (s *source) pluginMethods(pkg, name string) []string {
	for _, file := range s.files(pkg) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Name" || f.Body == nil || len(f.Body.List) != 1 {
				continue
			}
			result, ok := f.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(result.Results) != 1 || s.value(pkg, file, result.Results[0]) != name {
				continue
			}
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if named, ok := receiver.(*ast.Ident); ok {
				return s.methods(pkg)[named.Name]
			}
		}
	}
	return nil
}

func (c *comparison) checkPlugins() {
	c.begin("in-tree plugins", "versions/names.go plugins")
	var names []string
	for _, p := range c.source.inTreePlugins() {
		names = append(names, p.name)
	}
	c.differLists("plugin", c.rules.Plugins, names)
}

// checkExtensionPoints compares the extension points that in-tree plugins implement.
func (c *comparison) checkExtensionPoints() {
	c.begin("extension points of in-tree plugins", "profiles/schema/plugins.go InTreePlugins")
	fields := jsonFields(c.source.structs(c.configPackage())["Plugins"])
	for _, p := range c.source.inTreePlugins() {
		known, found := schema.InTreeNamed(p.name)
		if !found || len(p.methods) == 0 {
			continue
		}
		for _, point := range schema.ExtensionPoints() {
			if !slices.Contains(fields, point.Name) {
				continue
			}
			method := strings.ToUpper(point.Name[:1]) + point.Name[1:]
			if point.Name == schema.PointQueueSort {
				method = "Less"
			}
			has := slices.Contains(p.methods, method)
			if has != known.Implements(point.Name, c.facts.Minor) {
				c.differ("from %s on: %s implements %s: %v", c.minor(), p.name, point.Name, has)
			}
		}
	}
}

// checkUnsignedPlugins compares the plugins that filter or score and do not sign pods.
func (c *comparison) checkUnsignedPlugins() {
	c.begin("in-tree plugins that do not sign pods", "versions/table.go UnsignedPlugins")
	if !c.rules.Batching {
		return
	}
	var unsigned []string
	for _, p := range c.source.inTreePlugins() {
		if (slices.Contains(p.methods, "Filter") || slices.Contains(p.methods, "Score")) &&
			!slices.Contains(p.methods, "SignPod") {
			unsigned = append(unsigned, p.name)
		}
	}
	c.differLists("unsigned plugin", c.rules.UnsignedPlugins, unsigned)
}

// api returns the config API that the release of the compared rows writes, as that release reads
// it.
func (c *comparison) api() schema.API {
	api, _ := schema.APINamed(path.Base(c.rules.Preferred))
	return api.Of(c.facts.Minor)
}
