// Package plates draws the figures of a paper or a talk.
//
// It knows nothing of runs. Its callers fill one plain struct for each kind of figure ([Breakdown], [Time], ...), with
// labels as they are to be read and values in bytes or seconds, and call Draw with a [Style]: the width at which the
// figure is printed, the sizes of its letters, and a light or dark page. The [Drawing] that comes back is written as
// PDF, SVG, PNG of 300 dots an inch, or pgfplots source.
//
// There is one layout, in points, from the metrics of one font (Liberation Sans, which has the widths of Arial and
// Helvetica), and all four formats are written from it. The pgfplots source has the axes, the data in the units of the
// axes and the labels at their data points; its letters have the font of the document that inputs it, in the sizes
// \dpsLab and \dpsVal, and its colours are those of [StyleTeX], which the document must input first. Layout leaves room
// for fonts that are a little wider.
//
// Figures have neither titles nor notes: those belong to the caption.
package plates
