// Package documents makes the documents about an image, and compares them with it. The same input
// gives the same document:
//   - its program's software bill of materials, CycloneDX 1.6, with the modules that the Go linker
//     recorded, the Go standard library and the base image
//   - its SLSA provenance v1 (slsa.dev, "Build: Provenance"), from the build's lock
//   - the vulnerabilities that do not affect it, CycloneDX VEX
package documents

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// Program is a Go program in an image.
type Program struct {
	// Go is the compiler's version, such as go1.18.3.
	Go string
	// SHA256 of the file, in lower-case hexadecimal.
	SHA256 string
	// Modules are linked into the program.
	Modules []Module
}

// Module is a Go module with its sum as in a go.sum file, which is empty for a directory.
type Module struct{ Path, Version, Sum string }

// SBOMOptions describe the program's image.
type SBOMOptions struct {
	// Name of the program, such as kube-scheduler, and its Version.
	Name, Version string
	// Platform of the program, such as linux/amd64.
	Platform string
	// Base is the base image: NAME@sha256:…, or only the digest. If it is empty, it is left out.
	Base string
	// Tool is the pmk-sched version.
	Tool string
}

const (
	// propertySum has a module's sum as in go.sum: it is not a file's digest.
	propertySum      = "pmk-sched:go.sum"
	propertyPlatform = "pmk-sched:platform"
	golangType       = "pkg:golang/"
)

// NewSBOM returns a program's SBOM as JSON.
func NewSBOM(p Program, o SBOMOptions) ([]byte, error) {
	main := cyclonedx.Component{
		BOMRef: o.Name, Type: cyclonedx.ComponentTypeApplication, Name: o.Name, Version: o.Version,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: p.SHA256}},
		Properties: &[]cyclonedx.Property{{Name: propertyPlatform, Value: o.Platform}},
	}
	components := goComponents(p)
	if o.Base != "" {
		components = append(components, baseComponent(o.Base))
	}
	refs := []string{}
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.BOM{
		JSONSchema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: cyclonedx.BOMFormat,
		SpecVersion: cyclonedx.SpecVersion1_6, Version: 1,
		Metadata: &cyclonedx.Metadata{
			Component: &main,
			Tools: &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{
				{Type: cyclonedx.ComponentTypeApplication, Name: "pmk-sched", Version: o.Tool},
			}},
		},
		Components:   &components,
		Dependencies: &[]cyclonedx.Dependency{{Ref: o.Name, Dependencies: &refs}},
	}
	text, err := json.Marshal(bom)
	if err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	bom.SerialNumber = serialNumber(text)
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.Encode(&bom); err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	return out.Bytes(), nil
}

// serialNumber derives a UUID of version 8 (RFC 9562) from the content.
func serialNumber(text []byte) string {
	sum := sha256.Sum256(text)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	id := hex.EncodeToString(sum[:16])
	return "urn:uuid:" + strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// goComponents lists the modules in a program and the standard library, sorted.
func goComponents(p Program) []cyclonedx.Component {
	components := []cyclonedx.Component{library("stdlib", strings.TrimPrefix(p.Go, "go"), "")}
	for _, m := range p.Modules {
		components = append(components, library(m.Path, m.Version, m.Sum))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	return components
}

// packageURL returns a Go module's package URL (github.com/package-url/purl-spec, golang).
func packageURL(path, version string) string {
	return golangType + path + "@" + url.QueryEscape(version)
}

// library describes a module. The standard library's name is stdlib, as in Go's vulnerability
// database.
func library(path, version, sum string) cyclonedx.Component {
	purl := packageURL(path, version)
	c := cyclonedx.Component{
		BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl,
	}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: propertySum, Value: sum}}
	}
	return c
}

func baseComponent(base string) cyclonedx.Component {
	name, digest, named := strings.Cut(base, "@")
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeContainer, Name: "base", Version: digest}
	if !named {
		digest = name
		c.Version = digest
	} else {
		c.Name = name
		short := name[strings.LastIndex(name, "/")+1:]
		c.PackageURL = "pkg:oci/" + short + "@" + url.QueryEscape(digest) + "?repository_url=" + url.QueryEscape(name)
	}
	if value, ok := strings.CutPrefix(digest, "sha256:"); ok {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: value}}
	}
	c.BOMRef = "base@" + digest
	return c
}

// sumDigest returns the sum of a module (h1:…) in lower-case hexadecimal, or "" if it is not one.
func sumDigest(sum string) string {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	digest, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(digest) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(digest)
}
