package collect

import (
	"path/filepath"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// onPhantom makes the experiment run on the phantom GPU. leave records how much of the phantom GPU the processes held,
// after they have ended.
func (r *recording) onPhantom(spec *supervisorSpec, scratch string) (leave func(), err error) {
	library := *r.plan.phantom
	library.InductorDir = filepath.Join(scratch, "inductor") // empty, so that code compiles as in a first run
	library.Shared = filepath.Join(scratch, "devices")
	shared, err := phantom.NewShared(library.Shared, r.plan.world.pages())
	if err != nil {
		return nil, err
	}
	r.held = func() (bytes int64) {
		uses, err := shared.Uses()
		if err != nil {
			return 0
		}
		for _, u := range uses {
			bytes += u.ReservedBytes
		}
		return bytes
	}
	spec.Env = append(library.Env(spec.Env), agreementVariable+"="+filepath.Join(scratch, "agreement"),
		decisionsVariable+"="+places(r.e.Decisions))
	return func() {
		r.held = nil
		r.keepUses(shared)
		shared.Close()
	}, nil
}

// inWorld makes the experiment run as some ranks of a simulated world. leave finds out which ranks joined a process
// group. leave must be called after the ranks have ended and before their use of devices is judged.
func (r *recording) inWorld(spec *supervisorSpec, scratch string) (leave func(), err error) {
	world := r.plan.world
	joined, remove, err := newScratch() // the supervisor removes scratch before joined is read
	if err != nil {
		return nil, err
	}
	spec.Path, spec.Argv, spec.Env = world.command(scratch, r.plan.interpreter.Path, spec.Path, spec.Argv,
		append(spec.Env, joinedVariable+"="+joined))
	return func() {
		r.strangers = world.strangers(joined)
		remove()
		if len(r.strangers) > 0 && r.manifest.Status == schemas.StatusOK {
			r.warn(ranksWords(r.strangers) + " joined no process group: the script never called " +
				"torch.distributed.init_process_group, so dpsight recorded a process on its own")
		}
	}, nil
}

// keepUses writes into the manifest how much of each device the processes held together.
func (r *recording) keepUses(shared *phantom.Shared) {
	uses, err := shared.Uses()
	if err != nil {
		r.warn("the memory that all processes hold on a device together is unknown: " + err.Error())
		return
	}
	r.manifest.Phantom.Devices = deviceUses(uses)
	if world := r.plan.world; world != nil {
		if warning := world.astray(uses, r.strangers); warning != "" {
			r.warn(warning)
		}
	}
}
