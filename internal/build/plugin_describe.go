package build

import (
	"fmt"
	"go/ast"
	"go/doc"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
)

// PluginArgument is a field of a shipped plugin's arguments.
type PluginArgument struct {
	// Name is the path of the field as a configuration writes it: tls.caFile.
	Name string `json:"name"`
	// Type is Go's, Doc the field's comment.
	Type string `json:"type"`
	Doc  string `json:"doc,omitempty"`
}

// PluginDescription is what the source of a shipped plugin says to people.
type PluginDescription struct {
	// Synopsis is the first sentence of the package's comment.
	Synopsis  string           `json:"synopsis"`
	Arguments []PluginArgument `json:"arguments"`
}

// argumentsType is the type of a plugin's arguments.
const argumentsType = "Arguments"

// DescribePlugin reads the description of a shipped plugin.
func DescribePlugin(sources fs.FS, name string) (PluginDescription, error) {
	files, err := readSources(sources)
	if err != nil {
		return PluginDescription{}, fmt.Errorf("describe plugin %s: %w", name, err)
	}
	m := &pluginModule{path: apiModule, place: apiModule, files: files}
	pkg, err := parsePackage(m, builtinFolder+"/"+name, platformOf{})
	if err != nil {
		return PluginDescription{}, err
	}
	described := PluginDescription{Arguments: pkg.arguments(argumentsType, "", maxDepth)}
	for _, f := range pkg.parsed {
		if f.Doc != nil {
			described.Synopsis = new(doc.Package).Synopsis(f.Doc.Text())
		}
	}
	return described, nil
}

// arguments lists the fields of a struct type, those of structs below it by path.
func (s *sourcePackage) arguments(typeName, prefix string, depth int) []PluginArgument {
	spec, _, in := s.spec(typeName)
	declared, ok := spec.(*ast.TypeSpec)
	if !ok || depth == 0 {
		return nil
	}
	fields, ok := declared.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var all []PluginArgument
	for _, field := range fields.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		below, many := elementOf(field.Type)
		path := prefix + name + many
		if own, ok := below.(*ast.Ident); ok && !predeclared[own.Name] {
			if deeper := s.arguments(own.Name, path+".", depth-1); len(deeper) > 0 {
				all = append(all, deeper...)
				continue
			}
		}
		shown := strings.TrimPrefix(in.text(field.Type), s.path+".")
		all = append(all, PluginArgument{Name: prefix + name, Type: shown, Doc: strings.Join(strings.Fields(field.Doc.Text()), " ")})
	}
	return all
}

// elementOf looks through pointers and lists.
func elementOf(e ast.Expr) (element ast.Expr, many string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return elementOf(e.X)
	case *ast.ArrayType:
		element, _ = elementOf(e.Elt)
		return element, "[]"
	}
	return e, ""
}
