package documents

import (
	"fmt"
	"io"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

// WriteVEX writes a CycloneDX VEX document, with which scanners of images leave vulnerabilities
// out. name is the checked program, such as kube-scheduler. The vulnerabilities are those that it
// does not call: not_affected, since the vulnerable code is not reachable, or not present if its
// package is not linked. Vulnerabilities that it calls, or may call, are not in it. The same input
// gives the same bytes.
func WriteVEX(w io.Writer, name, release string, list []build.Vulnerability) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: name + "@" + release, Type: cdx.ComponentTypeApplication, Name: name, Version: release,
	}}
	components := []cdx.Component{}
	vulnerabilities := []cdx.Vulnerability{}
	for _, v := range list {
		if v.Reach != build.ReachImported && v.Reach != build.ReachRequired {
			continue
		}
		c := component(v)
		if !slices.ContainsFunc(components, func(known cdx.Component) bool { return known.BOMRef == c.BOMRef }) {
			components = append(components, c)
		}
		vulnerabilities = append(vulnerabilities, vulnerability(v, c.BOMRef))
	}
	bom.Components, bom.Vulnerabilities = &components, &vulnerabilities
	encoder := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode the VEX document: %w", err)
	}
	return nil
}

// component returns a vulnerability's module. Its reference is its package URL.
func component(v build.Vulnerability) cdx.Component {
	purl := packageURL(v.Module, v.Version)
	return cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: v.Module, Version: v.Version, PackageURL: purl,
	}
}

func vulnerability(v build.Vulnerability, ref string) cdx.Vulnerability {
	analysis := &cdx.VulnerabilityAnalysis{
		State: cdx.IASNotAffected, Justification: cdx.IAJCodeNotReachable,
		Detail: "govulncheck: the program imports the package and does not call its vulnerable functions",
	}
	if v.Reach == build.ReachRequired {
		analysis.Justification = cdx.IAJCodeNotPresent
		analysis.Detail = "govulncheck: the vulnerable package of the module is not linked into the program"
	}
	aliases := []cdx.VulnerabilityReference{}
	for _, alias := range v.Aliases {
		aliases = append(aliases, cdx.VulnerabilityReference{ID: alias, Source: &cdx.Source{Name: database(alias)}})
	}
	return cdx.Vulnerability{
		BOMRef: v.ID + " " + ref, ID: v.ID, Description: v.Summary, Analysis: analysis,
		Source:  &cdx.Source{Name: "Go vulnerability database"},
		Affects: &[]cdx.Affects{{Ref: ref}}, References: &aliases,
	}
}

// database returns the name of an alias's database.
func database(alias string) string {
	switch prefix, _, _ := strings.Cut(alias, "-"); prefix {
	case "CVE":
		return "CVE"
	case "GHSA":
		return "GitHub Advisory Database"
	default:
		return prefix
	}
}
