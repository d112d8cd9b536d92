{{- /* The sections of all pages: address, title of the page, heading and text. */ -}}
{{- $sections := slice -}}
{{- range append site.RegularPages (slice site.Home) -}}
  {{- $address := cond .IsHome "index.html" (strings.TrimPrefix "/" .RelPermalink) -}}
  {{- $title := partial "title.html" . -}}
  {{- $content := replaceRE ` <a class="anchor".*?</a>` "" .Content -}}
  {{- range split (replaceRE `<h([1-4]) id=` "\x00$0" $content) "\x00" -}}
    {{- with findRESubmatch `(?s)^<h([1-4]) id="([^"]*)">(.*?)</h[1-4]>(.*)$` . 1 -}}
      {{- $heading := index . 0 3 | plainify | htmlUnescape -}}
      {{- $text := replaceRE `(</t[dh]>|<br>|</p>|</li>)` "$1 " (index . 0 4) | plainify | htmlUnescape -}}
      {{- $text = strings.TrimSpace (replaceRE `\s+` " " $text) -}}
      {{- $at := cond (eq (index . 0 1) "1") $address (print $address "#" (index . 0 2)) -}}
      {{- $sections = $sections | append (dict "at" $at "page" ($title | plainify) "heading" $heading "text" $text) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $sections | jsonify (dict "noHTMLEscape" true) }};
