package plugins

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
)

// constantName returns the value of the package's constant Name.
func (s *pluginPackage) constantName(p Plugin) (string, error) {
	spec, kind, in := s.spec("Name")
	if spec == nil || kind != token.CONST {
		message := "package " + s.path + " has no constant Name"
		if spec != nil {
			message = fmt.Sprintf("Name of package %s is a %s, not a constant", s.path, kind)
		}
		return "", p.invalidf(`declare the name that a configuration uses: const Name = "MyPlugin"`+s.otherPackages(),
			"%s", message)
	}
	value := spec.(*ast.ValueSpec)
	for i, name := range value.Names {
		if name.Name == "Name" && i < len(value.Values) {
			if text, ok := s.constantText(value.Values[i], in, maxDepth); ok && text != "" {
				return text, nil
			}
		}
	}
	return "", p.invalidf(`declare it as a literal: const Name = "MyPlugin"`,
		"%s: the value of the constant Name cannot be read from the source", s.files.Position(spec.Pos()))
}

// otherPackages returns a hint with the packages of the module that look like plugins.
func (s *pluginPackage) otherPackages() string {
	if hint := s.module.packagesHint(); hint != "" {
		return "; " + hint
	}
	return ""
}

// maxDepth is the maximum number of references followed for a constant or an embedded type.
const maxDepth = 8

// constantText evaluates a constant expression of strings.
func (s *pluginPackage) constantText(e ast.Expr, in scope, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return s.constantText(e.X, in, depth-1)
	case *ast.BinaryExpr:
		left, ok := s.constantText(e.X, in, depth-1)
		right, alsoOK := s.constantText(e.Y, in, depth-1)
		return left + right, ok && alsoOK && e.Op == token.ADD
	case *ast.Ident:
		return s.constantNamed(e.Name, depth)
	case *ast.SelectorExpr:
		pkg, name, ok := in.qualified(e)
		if !ok {
			return "", false
		}
		other, ok := s.sibling(pkg)
		if !ok {
			return "", false
		}
		return other.constantNamed(name, depth)
	}
	return "", false
}

func (s *pluginPackage) constantNamed(name string, depth int) (string, bool) {
	spec, kind, in := s.spec(name)
	value, ok := spec.(*ast.ValueSpec)
	if !ok || kind != token.CONST {
		return "", false
	}
	for i, n := range value.Names {
		if n.Name == name && i < len(value.Values) {
			return s.constantText(value.Values[i], in, depth-1)
		}
	}
	return "", false
}

// sibling parses another package of the same module.
func (s *pluginPackage) sibling(pkg string) (*pluginPackage, bool) {
	if pkg == s.path {
		return s, true
	}
	dir, ok := s.module.dirOf(pkg)
	if !ok {
		return nil, false
	}
	other, err := parsePackage(s.module, dir, s.module.platform)
	return other, err == nil
}
