package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar returns a line of progress: the text, a bar for the share done, and the remaining time if it is known (left 0 =
// unknown). The line is shorter than columns, since a terminal would break a longer line.
func Bar(text string, done float64, left time.Duration, columns int) string {
	const width, percent = 10, len("100% ||")
	end := ""
	if left > 0 {
		end = "  " + Clock(left) + " left"
	}
	text = Cut(text, columns-1-width-percent-len("  ")-Width(end))
	bar := progressbar.NewOptions(1000, progressbar.OptionSetWriter(io.Discard), progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetWidth(width), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetDescription(text))
	n := int(min(max(done, 0), 0.999) * 1000)
	draw := func() error { return bar.Set(n) }
	if n == 0 {
		draw = bar.RenderBlank // to set nothing draws nothing
	}
	if draw() != nil {
		return text + end
	}
	drawn := strings.Trim(bar.String(), "\r ")
	return strings.TrimRight(drawn, " ") + end
}

// Cut returns the beginning of a line, as much as fits into the given number of columns.
func Cut(line string, columns int) string {
	if columns <= 0 || Width(line) <= columns {
		return line
	}
	cut := ""
	for _, r := range line {
		if Width(cut+string(r)) >= columns {
			break
		}
		cut += string(r)
	}
	return cut + "…"
}

// Clock formats a duration as a clock does: 1.5 s, 2:05, 1:00:00.
func Clock(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// Left estimates the remaining time from the share done and the time that it took. Left returns 0 if less than 2 % is
// done or less than three seconds have passed.
func Left(done float64, took time.Duration) time.Duration {
	if done < 0.02 || done > 1 || took < 3*time.Second {
		return 0
	}
	return time.Duration(float64(took) * (1 - done) / done).Round(time.Second)
}
