package plugins

import (
	"fmt"
	"go/ast"
	"go/doc"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
)

// Argument is a field of a bundled plugin's arguments.
type Argument struct {
	// Name is the path of the field in a configuration: tls.caFile.
	Name string `json:"name"`
	// Type is its Go type and Doc its comment.
	Type string `json:"type"`
	Doc  string `json:"doc,omitempty"`
}

// Description is a bundled plugin's documentation.
type Description struct {
	// Synopsis is the first sentence of the package's comment.
	Synopsis  string     `json:"synopsis"`
	Arguments []Argument `json:"arguments"`
}

// argumentsType is the name of a plugin's argument type.
const argumentsType = "Arguments"

// Describe reads the documentation of a bundled plugin from its source.
func Describe(sources fs.FS, name string) (Description, error) {
	files, err := readSources(sources)
	if err != nil {
		return Description{}, fmt.Errorf("describe plugin %s: %w", name, err)
	}
	m := &pluginModule{path: APIModule, shownAs: APIModule, files: files}
	pkg, err := parsePackage(m, builtinDir+"/"+name, Platform{})
	if err != nil {
		return Description{}, err
	}
	described := Description{Arguments: pkg.arguments(argumentsType, "", maxDepth)}
	for _, f := range pkg.parsed {
		if f.Doc != nil {
			described.Synopsis = new(doc.Package).Synopsis(f.Doc.Text())
		}
	}
	return described, nil
}

// arguments lists a struct type's fields and, by path, the fields of nested structs.
func (s *pluginPackage) arguments(typeName, prefix string, depth int) []Argument {
	spec, _, in := s.spec(typeName)
	declared, ok := spec.(*ast.TypeSpec)
	if !ok || depth == 0 {
		return nil
	}
	fields, ok := declared.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var all []Argument
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
		all = append(all,
			Argument{Name: prefix + name, Type: shown, Doc: strings.Join(strings.Fields(field.Doc.Text()), " ")})
	}
	return all
}

// elementOf returns the type behind pointers and slices.
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
