package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const bucketPercent = 5 // least percentage of the peak in gradients that are also in a DDP bucket

// BucketCopiesFacts are the facts of a [BucketCopies] finding: what the buckets hold in addition to the gradients.
type BucketCopiesFacts struct{ BucketBytes int64 }

// bucketCopies looks for gradients that DDP stores twice: in .grad, and in the bucket that it averages between
// ranks. If .grad is a view of the bucket, the bucket's block is tagged as gradients too.
func (x *evidence) bucketCopies() []Finding {
	var buckets int64
	alone := map[*schemas.Allocation]bool{} // gradients that do not lie in a bucket
	for i, a := range x.l.Allocs {
		switch bucket, gradient := x.bucketOrGradient(i); {
		case gradient && !bucket:
			alone[a] = true
		case bucket && !gradient && a.LiveAt(x.d.At.Event):
			buckets += a.RequestedBytes
		}
	}
	copied := func(a *schemas.Allocation) bool { return alone[a] }
	held := x.bytesAtPeak(schemas.Gradients, copied)
	if buckets == 0 || !memory.AtLeast(min(held, buckets), x.d.AllocatedBytes, bucketPercent) {
		return nil
	}
	f := x.finding(BucketCopies)
	x.of(&f, held)
	f.Facts = BucketCopiesFacts{BucketBytes: buckets}
	x.line(&f, x.counted(schemas.Gradients).where(copied))
	x.savesWithout(&f, x.held(schemas.Gradients, copied), x.looked, Replayed)
	return []Finding{f}
}

// bucketOrGradient reports whether block i is a bucket, and whether a parameter's .grad lies in it.
func (x *evidence) bucketOrGradient(i int) (bucket, gradient bool) {
	return slices.ContainsFunc(x.l.Owners[i], isBucket), slices.ContainsFunc(x.l.Owners[i], isTaggedGradient)
}

// isBucket reports whether an owner is a DDP bucket, as found by a rule on the block's birth.
func isBucket(o *schemas.Owner) bool { return o.Category == schemas.Gradients && o.Name == bucketName }

// isTaggedGradient reports whether a tag says that the block is a parameter's .grad.
func isTaggedGradient(o *schemas.Owner) bool {
	return o.Category == schemas.Gradients && o.Evidence == schemas.Tagged
}

const bucketName = "DDP bucket" // the agent's name for memory that a reducer allocates
