// Package modelnames renames the modules and parameters of different models that have the same names.
//
// The two halves of a GAN may both have a module "main". The discriminator is called first:
//
//	the agent writes        tables have
//	main.0                  Discriminator.main.0
//	Generator.main.0        Generator.main.0
//
// The agent labels the names of the later model with that model's class. The agent could not label the first model,
// since there was no other model when the first was called. In a table, "main.0" beside "Generator.main.0" would read
// as if one module were a part of the other.
//
// The rules:
//
//   - The agent's label is the model's class, or the class and a number ("Net#2") if an earlier model has the class as
//     its label.
//   - A model without a label is ambiguous if a later, labelled model has a module with the same path. A model with
//     parameters in its root module is also ambiguous if a later model is labelled because of root parameters.
//   - An ambiguous model gets its class as the label in tables.
//   - Ambiguous models of one class are numbered in the order of their first calls: "Net#1", "Net#2".
//   - A model that is created again, as in each trial of a search, has the label of the earlier model. The agent gives
//     both the same names, so tables cannot distinguish them.
//   - A journal names a parameter of a root module ("scale") without its model. A parameter without a model gets the
//     label of the first ambiguous model that has parameters in its root module. If no ambiguous model is known to have
//     root parameters, the parameter gets the label of the first ambiguous model.
//   - If unlabelled models of several classes have parameters in their root modules, it is unknown which of these
//     models shares a name with the labelled one. While this is unknown, root parameters alone make no model ambiguous.
//   - The names of the script's own tags, phases and marks do not change.
package modelnames
