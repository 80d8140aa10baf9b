// Package plates draws the figures of a paper or a talk.
//
// The package knows nothing of runs. A caller fills one plain struct for each kind of figure ([Breakdown], [Time],
// ...), with labels as the reader sees them and values in bytes or seconds. The caller then calls Draw with a [Style]:
// the width at which the figure is printed, the sizes of the figure's letters, and a light or dark page. The resulting
// [Drawing] can be written as PDF, SVG, PNG of 300 dots an inch, or pgfplots source.
//
// All four formats share one layout, in points, from the metrics of one font: Liberation Sans, which has the widths of
// Arial and Helvetica. The pgfplots source has the axes, the data in the units of the axes, and the labels at their
// data points. Letters in pgfplots source take the font of the document that inputs it, in the sizes \dpsLab and
// \dpsVal. The source's colours come from [StyleTeX], which the document must input first. The layout leaves room for
// fonts that are slightly wider.
//
// Figures have neither titles nor notes: these belong in the caption.
package plates
