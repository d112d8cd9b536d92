package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

const schedulerConfig = kubernetes + "/pkg/scheduler/apis/config"

// checkConfigAPIs compares the config APIs that the release reads, and the one that it writes.
func (c *comparison) checkConfigAPIs() {
	c.begin("config APIs", "versions/table.go Accepted, Preferred, Render")
	text := c.source.text(schedulerConfig + "/scheme/scheme.go")
	var read []string
	for _, name := range matches(text, `Must\(config(v\w+)\.AddToScheme`) {
		if c.source.exists(path.Join(staging, "config", name, "types.go")) {
			read = append(read, schema.ConfigGroup+"/"+name)
		}
	}
	c.differLists("config API", c.rules.Accepted, read)
	_, priority, _ := strings.Cut(text, "SetVersionPriority(")
	if first := regexp.MustCompile(`config(v\w+)\.SchemeGroupVersion`).FindStringSubmatch(priority); first != nil {
		c.differValues("the config API that --write-config-to writes", c.rules.Preferred,
			schema.ConfigGroup+"/"+first[1])
	}
}

// checkConfigFields compares the fields of KubeSchedulerConfiguration and the types in it.
func (c *comparison) checkConfigFields() {
	c.begin("fields of the configuration", "profiles/schema/configuration_fields.go")
	c.differFields("", "KubeSchedulerConfiguration", c.configPackage(), schema.Configuration())
}

func (c *comparison) configPackage() string { return staging + "/config/" + c.api().Name }

// checkPluginArguments compares the kinds and fields of plugin arguments.
func (c *comparison) checkPluginArguments() {
	c.begin("arguments of plugins", "profiles/schema/plugin_args.go argsObjects")
	structs := c.source.structs(c.configPackage())
	var read, known []string
	for name := range structs {
		if plugin, is := strings.CutSuffix(name, "Args"); is {
			read = append(read, plugin)
		}
	}
	for _, plugin := range unique(append(slices.Clone(c.rules.Plugins), read...)) {
		args, found := schema.KnownArgs(plugin)
		if !found || !args.In(c.api()) {
			continue
		}
		known = append(known, plugin)
		if slices.Contains(read, plugin) {
			c.differFields(plugin, plugin+"Args", c.configPackage(), args.Object())
		}
	}
	c.differLists("arguments of plugin", known, read)
}

// differFields compares a struct with an object, and the types of its fields.
func (c *comparison) differFields(where, name, pkg string, object schema.Object) {
	t := c.source.structs(pkg)[name]
	if t == nil {
		return // a type of another API, such as a label selector
	}
	var known []string
	types := c.fieldTypes(pkg, t)
	for _, f := range object.Fields {
		if !f.In(c.api()) {
			continue
		}
		known = append(known, f.Name)
		if of, found := types[f.Name]; found && f.Object != nil {
			c.differFields(schema.Join(where, f.Name), of.name, of.pkg, f.Object())
		}
	}
	c.differLists("field of "+orNone(schema.Join(where, name)), known, slices.Collect(maps.Keys(types)))
}

// typeName is a type with its package.
type typeName struct{ pkg, name string }

// fieldTypes returns a struct's field types by their names in JSON, with the fields of embedded
// structs.
func (c *comparison) fieldTypes(pkg string, t *ast.StructType) map[string]typeName {
	found := map[string]typeName{}
	for _, field := range t.Fields.List {
		of := c.typeOf(pkg, field.Type)
		tag := ""
		if field.Tag != nil {
			tag, _, _ = strings.Cut(strings.Join(matches(field.Tag.Value, `json:"([^"]*)"`), ""), ",")
		}
		switch {
		case of.name == "TypeMeta":
			found["apiVersion"], found["kind"] = typeName{}, typeName{}
		case tag == "" && len(field.Names) == 0:
			if embedded := c.source.structs(of.pkg)[of.name]; embedded != nil {
				maps.Copy(found, c.fieldTypes(of.pkg, embedded))
			}
		case tag != "" && tag != "-":
			found[tag] = of
		}
	}
	return found
}

// typeOf returns the named type in a field's type. The files of a package name an import alike.
func (c *comparison) typeOf(pkg string, expr ast.Expr) typeName {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return c.typeOf(pkg, e.X)
	case *ast.ArrayType:
		return c.typeOf(pkg, e.Elt)
	case *ast.Ident:
		return typeName{pkg, e.Name}
	case *ast.SelectorExpr:
		for _, file := range c.source.files(pkg) {
			if from := imported(file, fmt.Sprint(e.X)); from != "" {
				return typeName{from, e.Sel.Name}
			}
		}
	}
	return typeName{}
}

// checkRejectedPlugins compares the plugins that the config API refuses.
func (c *comparison) checkRejectedPlugins() {
	c.begin("plugins that the config API refuses", "versions/table.go RejectedPlugins")
	text := c.source.text(schedulerConfig + "/validation/validation.go")
	_, list, _ := strings.Cut(text, "PluginsByVersion = ")
	list, _, _ = strings.Cut(list, "\n}\n")
	c.differLists("refused plugin", c.rules.RejectedPlugins[c.rules.Preferred], matches(list, `"(\w+)"`))
}

// checkDefaultPlugins compares the plugins that are enabled without a feature gate, and their
// weights.
func (c *comparison) checkDefaultPlugins() {
	c.begin("default plugins and their weights", "profiles/schema/plugins.go InTreePlugins")
	api := c.api()
	if !api.MultiPoint {
		return
	}
	read, known := c.source.defaultPlugins(api.Name), map[string]int{}
	for _, p := range schema.InTreePlugins() {
		if slices.Contains(c.rules.Plugins, p.Name) && schema.IsDefault(api, schema.MultiPoint, p.Name) {
			known[p.Name] = p.Weight(api)
		}
	}
	for _, name := range unionKeys(read, known) {
		was, before := known[name]
		is, now := read[name]
		switch {
		case !before:
			c.differ("add from %s on: default plugin %s with weight %d", c.minor(), name, is)
		case !now:
			c.differ("end before %s: default plugin %s", c.minor(), name)
		case was != is:
			c.differ("from %s on: the weight of %s is %d, the table has %d", c.minor(), name, is, was)
		}
	}
}

// defaultPlugins returns the plugins in getDefaultPlugins with their weights.
func (s *source) defaultPlugins(api string) map[string]int {
	pkg := schedulerConfig + "/" + api
	file, found := s.file(pkg+"/default_plugins.go"), map[string]int{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "getDefaultPlugins" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if entry, ok := n.(*ast.CompositeLit); ok && entry.Type == nil {
				s.addDefault(found, pkg, file, entry)
			}
			return true
		})
	}
	return found
}

// addDefault adds {Name: names.X, Weight: ptr.To[int32](2)}.
func (s *source) addDefault(found map[string]int, pkg string, file *ast.File, entry *ast.CompositeLit) {
	name, weight := "", 0
	for _, element := range entry.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		switch fmt.Sprint(field.Key) {
		case "Name":
			name = s.value(pkg, file, field.Value)
		case "Weight":
			if call, ok := field.Value.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if number, ok := call.Args[0].(*ast.BasicLit); ok {
					weight, _ = strconv.Atoi(number.Value)
				}
			}
		}
	}
	if name != "" {
		found[name] = weight
	}
}
