package documents

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// maxComponents bounds the components of a document that is read.
const maxComponents = 20000

// CompareSBOM returns how an SBOM differs from a program, one line each: its digest, the modules
// with versions and sums, and the standard library. Components of other kinds are not compared. The
// document is untrusted input; the error is about its form.
func CompareSBOM(document []byte, p Program) ([]string, error) {
	bom := cyclonedx.BOM{}
	if err := json.Unmarshal(document, &bom); err != nil {
		return nil, fmt.Errorf("read SBOM: %w", err)
	}
	if bom.BOMFormat != cyclonedx.BOMFormat || bom.Metadata == nil || bom.Metadata.Component == nil ||
		bom.Components == nil {
		return nil, fmt.Errorf("read SBOM: expected a CycloneDX document with a component in its metadata")
	}
	if len(*bom.Components) > maxComponents {
		return nil, fmt.Errorf("read SBOM: it has %d components, the limit is %d", len(*bom.Components), maxComponents)
	}
	var differences []string
	if got := digest(bom.Metadata.Component); got != p.SHA256 {
		differences = append(differences, fmt.Sprintf("program: the SBOM has sha256 %.80s, the image %s", orNone(got), p.SHA256))
	}
	return append(differences, compareModules(modules(*bom.Components), modules(goComponents(p)))...), nil
}

func digest(c *cyclonedx.Component) string {
	if c.Hashes != nil {
		for _, h := range *c.Hashes {
			if h.Algorithm == cyclonedx.HashAlgoSHA256 {
				return h.Value
			}
		}
	}
	return ""
}

// modules returns the version and the sum of each Go module by its path.
func modules(components []cyclonedx.Component) map[string]string {
	all := map[string]string{}
	for _, c := range components {
		if !strings.HasPrefix(c.PackageURL, golangType) {
			continue
		}
		value := c.Version
		if c.Properties != nil {
			for _, property := range *c.Properties {
				if property.Name == propertySum {
					value += " " + property.Value
				}
			}
		}
		all[c.Name] = value
	}
	return all
}

// maxDifferences is the maximum number of listed modules.
const maxDifferences = 10

func compareModules(documented, linked map[string]string) []string {
	all := maps.Clone(documented)
	maps.Copy(all, linked)
	var list []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if a, b := documented[path], linked[path]; a != b {
			list = append(list, fmt.Sprintf("module %.200s: the SBOM has %.200s, the image %s", path, orNone(a), orNone(b)))
		}
	}
	if more := len(list) - maxDifferences; more > 0 {
		list = append(list[:maxDifferences], fmt.Sprintf("and %d more modules", more))
	}
	return list
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
