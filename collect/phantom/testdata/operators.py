"""Runs operators whose libraries or values exist only on a device, forward and backward. Prints those that fail."""

import json
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
warnings.simplefilter("ignore")
d = "cuda"


def t(*sizes, **kwargs):
    return torch.randn(*sizes, device=d, requires_grad=True, **kwargs)


def c(*sizes):
    return t(*sizes, dtype=torch.cfloat)


def i(end, *sizes):
    return torch.randint(0, end, sizes, device=d)


def spd(n):
    return (torch.eye(n, device=d) * 2).requires_grad_()


def bspd(batch, n):
    return torch.eye(n, device=d).expand(batch, n, n).contiguous().requires_grad_()


def sp():
    return torch.eye(8, device=d).to_sparse()


def csr():
    return torch.eye(8, device=d).to_sparse_csr()


def csc():
    return torch.eye(8, device=d).to_sparse_csc()


def bsr():
    return torch.eye(16, device=d).to_sparse_bsr((4, 4))


def packed():
    return nn.utils.rnn.pack_padded_sequence(t(5, 3, 8), torch.tensor([5, 3, 2]))


def driver(name):
    return lambda: torch.linalg.svd(t(40, 20), full_matrices=False, driver=name)[1]


def lib(name, function):
    def run():
        before = torch.backends.cuda.preferred_linalg_library()
        torch.backends.cuda.preferred_linalg_library(name)
        try:
            return function()
        finally:
            torch.backends.cuda.preferred_linalg_library(before)

    return run


operators = {
    "lstm_proj": lambda: nn.LSTM(8, 8, proj_size=4, num_layers=2, bidirectional=True).to(d)(t(3, 2, 8))[0],
    "gru_bi_dropout": lambda: nn.GRU(8, 8, num_layers=2, bidirectional=True, dropout=0.5).to(d)(t(3, 2, 8))[0],
    "lstm_packed": lambda: nn.utils.rnn.pad_packed_sequence(nn.LSTM(8, 8).to(d)(packed())[0])[0],
    "rnn_relu": lambda: nn.RNN(8, 8, nonlinearity="relu", batch_first=True).to(d)(t(3, 2, 8))[0],
    "lstm_half": lambda: nn.LSTM(8, 8).to(d).half()(t(3, 2, 8, dtype=torch.half))[0],
    "fft2": lambda: torch.fft.fft2(t(4, 16, 16)).abs(),
    "ifft": lambda: torch.fft.ifft(c(4, 16)).abs(),
    "irfft2": lambda: torch.fft.irfft2(torch.fft.rfft2(t(4, 16, 16))),
    "rfftn": lambda: torch.fft.rfftn(t(4, 8, 8, 8)).abs(),
    "hfft": lambda: torch.fft.hfft(c(4, 9)),
    "ihfft": lambda: torch.fft.ihfft(t(4, 16)).abs(),
    "fft_prime": lambda: torch.fft.fft(t(4, 1009)).abs(),
    "fft_double": lambda: torch.fft.fft(t(4, 16, dtype=torch.double)).abs(),
    "qr_complete": lambda: torch.linalg.qr(t(8, 8), mode="complete")[0],
    "qr_batched": lambda: torch.linalg.qr(t(5, 8, 4))[0],
    "qr_batched_big": lambda: torch.linalg.qr(t(3, 300, 200))[0],
    "svd_full": lambda: torch.linalg.svd(t(8, 4))[1],
    "svd_batched": lambda: torch.linalg.svd(t(5, 8, 4), full_matrices=False)[1],
    "svd_batched_big": lambda: torch.linalg.svd(t(5, 80, 40), full_matrices=False)[1],
    "svd_complex": lambda: torch.linalg.svd(c(8, 4), full_matrices=False)[1],
    "svd_double": lambda: torch.linalg.svd(t(8, 4, dtype=torch.double), full_matrices=False)[1],
    "svdvals_b": lambda: torch.linalg.svdvals(t(5, 8, 4)),
    "pca_lowrank": lambda: torch.pca_lowrank(t(64, 32), q=4)[0],
    "eigh_batched": lambda: torch.linalg.eigh(bspd(5, 8))[0],
    "eigh_big": lambda: torch.linalg.eigh(spd(600))[0],
    "eigh_complex": lambda: torch.linalg.eigh(torch.eye(8, device=d, dtype=torch.cfloat).requires_grad_())[0],
    "eigvalsh_b": lambda: torch.linalg.eigvalsh(bspd(5, 8)),
    "eig": lambda: torch.linalg.eig(spd(8))[0].abs(),
    "eig_vectors": lambda: torch.linalg.eig(t(8, 8))[1].abs(),
    "eig_batched": lambda: torch.linalg.eig(t(3, 8, 8))[0].abs(),
    "eig_complex": lambda: torch.linalg.eig(c(8, 8))[0].abs(),
    "eigvals": lambda: torch.linalg.eigvals(t(8, 8)).abs(),
    "cholesky_ex": lambda: torch.linalg.cholesky_ex(spd(8))[0],
    "cholesky_upper": lambda: torch.linalg.cholesky(spd(8), upper=True),
    "cholesky_big": lambda: torch.linalg.cholesky(spd(600)),
    "cholesky_inverse": lambda: torch.cholesky_inverse(spd(8)),
    "cholesky_inverse_b": lambda: torch.cholesky_inverse(bspd(5, 8)),
    "cholesky_solve_b": lambda: torch.cholesky_solve(t(5, 8, 2), bspd(5, 8)),
    "lu": lambda: torch.linalg.lu(spd(8))[1],
    "lu_batched": lambda: torch.linalg.lu(bspd(5, 8))[1],
    "lu_factor_ex": lambda: torch.linalg.lu_factor_ex(bspd(5, 200))[0],
    "lu_solve": lambda: torch.linalg.lu_solve(*torch.linalg.lu_factor(spd(8)), t(8, 2)),
    "lu_solve_b": lambda: torch.linalg.lu_solve(*torch.linalg.lu_factor(bspd(5, 8)), t(5, 8, 2)),
    "lu_unpack": lambda: torch.lu_unpack(*torch.linalg.lu_factor(spd(8)))[2],
    "ldl_factor": lambda: torch.linalg.ldl_factor(spd(8).detach())[0],
    "ldl_factor_ex_b": lambda: torch.linalg.ldl_factor_ex(bspd(3, 8).detach())[0],
    "ldl_solve": lambda: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(spd(8).detach()), torch.randn(8, 2, device=d)),
    "geqrf": lambda: torch.geqrf(t(8, 4).detach())[0],
    "geqrf_b": lambda: torch.geqrf(t(3, 8, 4).detach())[0],
    "ormqr": lambda: torch.ormqr(t(8, 4), t(4), t(8, 3)),
    "ormqr_b": lambda: torch.ormqr(t(3, 8, 4).detach(), t(3, 4).detach(), t(3, 8, 3).detach()),
    "orgqr": lambda: torch.orgqr(t(8, 4), t(4)),
    "pinv_herm": lambda: torch.linalg.pinv(spd(8), hermitian=True),
    "lstsq_b": lambda: torch.linalg.lstsq(t(3, 8, 4), t(3, 8, 2))[0],
    "lstsq_wide": lambda: torch.linalg.lstsq(t(4, 8), t(4, 2))[0],
    "matrix_rank": lambda: torch.linalg.matrix_rank(t(8, 4)).float(),
    "matrix_power_neg": lambda: torch.linalg.matrix_power(spd(8), -2),
    "cond": lambda: torch.linalg.cond(spd(8)),
    "tensorinv": lambda: torch.linalg.tensorinv(torch.eye(24, device=d).reshape(4, 6, 8, 3).requires_grad_()),
    "tensorsolve": lambda: torch.linalg.tensorsolve(
        torch.eye(24, device=d).reshape(4, 6, 24).requires_grad_(), t(4, 6)
    ),
    "inv_ex": lambda: torch.linalg.inv_ex(spd(8))[0],
    "solve_ex": lambda: torch.linalg.solve_ex(spd(8), t(8, 2))[0],
    "solve_vec": lambda: torch.linalg.solve(spd(8), t(8)),
    "solve_right": lambda: torch.linalg.solve(spd(8), t(2, 8), left=False),
    "triangular_b": lambda: torch.linalg.solve_triangular(bspd(5, 8), t(5, 8, 2), upper=False),
    "logdet": lambda: torch.logdet(spd(8)),
    "det_b": lambda: torch.linalg.det(bspd(5, 8)),
    "matrix_exp_b": lambda: torch.matrix_exp(t(3, 8, 8)),
    "sparse_coo_grad": lambda: torch.sparse.mm(sp().requires_grad_(), t(8, 4)),
    "sparse_addmm": lambda: torch.sparse.addmm(t(8, 4), sp(), t(8, 4)),
    "sparse_bmm": lambda: torch.bmm(bspd(3, 8).detach().to_sparse(), t(3, 8, 4)),
    "sparse_bmm_grad": lambda: torch.bmm(bspd(3, 8).detach().to_sparse().requires_grad_(), t(3, 8, 4)),
    "sparse_spmm": lambda: torch.sparse.mm(sp(), sp()).to_dense(),
    "sparse_spmm_grad": lambda: torch.sparse.mm(sp().requires_grad_(), sp().requires_grad_()).to_dense(),
    "sparse_csr_spmm": lambda: (csr() @ csr()).to_dense(),
    "sparse_csc_mm": lambda: csc() @ torch.randn(8, 4, device=d),
    "sparse_csr_mv": lambda: csr() @ torch.randn(8, device=d),
    "sparse_coo_mv": lambda: torch.mv(sp(), t(8)),
    "sparse_csr_add": lambda: (csr() + csr()).to_dense(),
    "sparse_csr_add2": lambda: torch.add(csr(), csr(), alpha=2).to_dense(),
    "sparse_coo_add": lambda: (sp() + sp()).to_dense(),
    "sparse_coo_mul": lambda: (sp() * sp()).to_dense(),
    "sparse_sum": lambda: torch.sparse.sum(sp().requires_grad_(), dim=1).to_dense(),
    "sparse_softmax": lambda: torch.sparse.softmax(sp().requires_grad_(), dim=1).to_dense(),
    "sparse_sampled_addmm": lambda: torch.sparse.sampled_addmm(
        csr(), torch.randn(8, 4, device=d), torch.randn(4, 8, device=d)
    ).to_dense(),
    "sparse_sampled_addmm_grad": lambda: torch.sparse.sampled_addmm(
        csr().requires_grad_(), t(8, 4), t(4, 8)
    ).to_dense(),
    "sparse_csr_tri": lambda: torch.triangular_solve(torch.randn(8, 2, device=d), csr())[0],
    "sparse_csr_tri_vec": lambda: torch.triangular_solve(torch.randn(8, 1, device=d), csr())[0],
    "sparse_bsr_tri": lambda: torch.triangular_solve(torch.randn(16, 2, device=d), bsr())[0],
    "sparse_bsr_tri_vec": lambda: torch.triangular_solve(torch.randn(16, 1, device=d), bsr())[0],
    "sparse_bsr_mm": lambda: bsr() @ torch.randn(16, 4, device=d),
    "sparse_bsr_mv": lambda: bsr() @ torch.randn(16, device=d),
    "sparse_bsr_addmm": lambda: torch.addmm(torch.randn(16, 4, device=d), bsr(), torch.randn(16, 4, device=d)),
    "sparse_bsr_linear": lambda: F.linear(torch.randn(4, 16, device=d), bsr()),
    "sparse_bsc": lambda: torch.eye(16, device=d).to_sparse_bsc((4, 4)).to_dense(),
    "sparse_coalesce": lambda: (
        torch.sparse_coo_tensor(i(5, 2, 9), torch.randn(9, device=d), (5, 5)).coalesce().to_dense()
    ),
    "sparse_mask": lambda: t(8, 8).sparse_mask(sp().coalesce()).to_dense(),
    "to_sparse_grad": lambda: t(8, 8).to_sparse().to_dense(),
    "to_csr_grad": lambda: t(8, 8).to_sparse_csr().to_dense(),
    "sparse_transpose": lambda: sp().t().coalesce().to_dense(),
    "sparse_index_select": lambda: sp().index_select(0, i(8, 3)).to_dense(),
    "sparse_semi": lambda: (
        torch.sparse.to_sparse_semi_structured(torch.tensor([0, 0, 1, 1], device=d, dtype=torch.half).tile((128, 32)))
        @ torch.randn(128, 128, device=d, dtype=torch.half)
    ),
    "emb_sparse_backward": lambda: nn.Embedding(10, 4, sparse=True).to(d)(i(10, 3, 4)),
    "embedding_bag": lambda: nn.EmbeddingBag(10, 4).to(d)(i(10, 7), torch.tensor([0, 3], device=d)),
    "embedding_bag_max": lambda: nn.EmbeddingBag(10, 4, mode="max").to(d)(i(10, 7), torch.tensor([0, 3], device=d)),
    "embedding_bag_sparse": lambda: nn.EmbeddingBag(10, 4, mode="sum", sparse=True).to(d)(i(10, 2, 3)),
    "ctc_mean": lambda: nn.CTCLoss(zero_infinity=True)(
        t(20, 2, 10).log_softmax(2), torch.randint(1, 9, (2, 5), device=d), torch.tensor([20, 20]), torch.tensor([5, 5])
    ),
    "ctc_dev_len": lambda: F.ctc_loss(
        t(20, 2, 10).log_softmax(2),
        torch.randint(1, 9, (2, 5), device=d),
        torch.tensor([20, 20], device=d),
        torch.tensor([5, 5], device=d),
    ),
    "ctc_cudnn_dev": lambda: F.ctc_loss(
        t(20, 2, 10).log_softmax(2),
        torch.randint(1, 9, (10,), dtype=torch.int32, device=d),
        torch.tensor([20, 20], dtype=torch.int32, device=d),
        torch.tensor([5, 5], dtype=torch.int32, device=d),
    ),
    "ctc_none": lambda: F.ctc_loss(
        t(20, 2, 10).log_softmax(2), torch.randint(1, 9, (2, 5), device=d), (20, 20), (5, 5), reduction="none"
    ),
    "gaussian_nll": lambda: F.gaussian_nll_loss(t(8), t(8), torch.rand(8, device=d)),
    "gaussian_nll_mod": lambda: nn.GaussianNLLLoss()(t(8), t(8), torch.ones(8, device=d) * t(8).exp()),
    "grid_sample3d": lambda: F.grid_sample(t(1, 1, 4, 4, 4), t(1, 2, 2, 2, 3), align_corners=False),
    "grid_cudnn": lambda: torch.cudnn_grid_sampler(t(1, 1, 8, 8), t(1, 4, 4, 2)),
    "affine_cudnn": lambda: torch.cudnn_affine_grid_generator(t(1, 2, 3), 1, 1, 4, 4),
    "unique_all": lambda: torch.unique(i(5, 100), return_inverse=True, return_counts=True)[2].float(),
    "unique_dim": lambda: torch.unique(i(5, 100, 2), dim=0).float(),
    "unique_consecutive": lambda: torch.unique_consecutive(i(5, 100), return_counts=True)[0].float(),
    "masked_select": lambda: t(100).masked_select(torch.rand(100, device=d) > 0.5),
    "bool_index": lambda: (lambda x: x[x > 0])(t(100)),
    "index_put_bool": lambda: (lambda x, y: x.index_put((y > 0,), torch.zeros((), device=d)))(t(100), t(100)),
    "index_put_acc": lambda: torch.zeros(10, device=d).index_put((i(10, 20),), t(20), accumulate=True),
    "masked_scatter": lambda: t(100).masked_scatter(torch.rand(100, device=d) > 0.5, t(100)),
    "where1": lambda: torch.where(t(100) > 0)[0].float(),
    "argwhere": lambda: torch.argwhere(t(10, 10) > 0).float(),
    "nonzero_static": lambda: torch.nonzero_static(t(100) > 0, size=10).float(),
    "sort_stable": lambda: torch.sort(t(10, 1000), stable=True)[0],
    "topk_big": lambda: t(20000).topk(5000)[0],
    "kthvalue": lambda: t(100).kthvalue(5)[0],
    "median": lambda: t(100).median(),
    "nanmedian": lambda: t(10, 100).nanmedian(1)[0],
    "quantile": lambda: torch.quantile(t(10, 100), torch.tensor([0.1, 0.5], device=d), dim=1),
    "nanquantile": lambda: torch.nanquantile(t(10, 100), 0.5, dim=1),
    "histc": lambda: torch.histc(t(100).detach(), bins=10),
    "histc_range": lambda: torch.histc(t(100).detach(), bins=10, min=-1, max=1),
    "bincount_w": lambda: torch.bincount(i(5, 100), weights=torch.rand(100, device=d), minlength=7),
    "searchsorted": lambda: torch.searchsorted(torch.arange(100.0, device=d), t(10).detach()).float(),
    "multinomial_repl": lambda: torch.multinomial(torch.rand(4, 5, device=d), 20, replacement=True).float(),
    "cdist_b": lambda: torch.cdist(t(2, 40, 4), t(2, 40, 4)),
    "pdist": lambda: F.pdist(t(8, 4)),
    "stft_in": lambda: torch.view_as_real(
        torch.stft(t(2, 4000), 512, hop_length=128, window=torch.hann_window(512, device=d), return_complex=True)
    ),
    "istft_dev": lambda: torch.istft(
        torch.stft(t(4000), 256, window=torch.hann_window(256, device=d), return_complex=True),
        256,
        window=torch.hann_window(256, device=d),
        length=4000,
    ),
    "scatter_reduce": lambda: torch.zeros(10, device=d).scatter_reduce(0, i(10, 20), t(20), "mean"),
    "index_reduce": lambda: torch.ones(10, 4, device=d).index_reduce(0, i(10, 20), t(20, 4), "mean"),
    "segment_reduce": lambda: torch.segment_reduce(t(10, 4), "sum", lengths=torch.tensor([4, 6], device=d), axis=0),
    "repeat_interleave": lambda: torch.repeat_interleave(t(5), torch.tensor([1, 2, 3, 1, 1], device=d)),
    "repeat_interleave_unknown": lambda: torch.repeat_interleave(t(5), i(3, 5)),
    "fold": lambda: F.fold(t(2, 27, 36), (8, 8), 3),
    "max_unpool2d": lambda: F.max_unpool2d(*F.max_pool2d(t(2, 3, 8, 8), 2, return_indices=True), 2),
    "max_unpool3d": lambda: F.max_unpool3d(*F.max_pool3d(t(2, 3, 8, 8, 8), 2, return_indices=True), 2),
    "fractional2d": lambda: F.fractional_max_pool2d(t(2, 3, 8, 8), 2, output_size=4),
    "fractional3d": lambda: F.fractional_max_pool3d(t(2, 3, 8, 8, 8), 2, output_size=4),
    "nested": lambda: torch.nested.nested_tensor(
        [torch.randn(3, 4, device=d), torch.randn(5, 4, device=d)], requires_grad=True
    ).to_padded_tensor(0.0),
    "nested_jagged": lambda: torch.nested.nested_tensor(
        [torch.randn(3, 4, device=d), torch.randn(5, 4, device=d)], layout=torch.jagged, requires_grad=True
    ).to_padded_tensor(0.0),
    "nested_linear": lambda: (
        nn.Linear(4, 8)
        .to(d)(torch.nested.nested_tensor([torch.randn(3, 4, device=d), torch.randn(5, 4, device=d)]))
        .to_padded_tensor(0.0)
    ),
    "nested_jagged_linear": lambda: (
        nn.Linear(4, 8)
        .to(d)(
            torch.nested.nested_tensor([torch.randn(3, 4, device=d), torch.randn(5, 4, device=d)], layout=torch.jagged)
        )
        .values()
    ),
    "nested_sdpa": lambda: (
        (lambda q: F.scaled_dot_product_attention(q, q, q))(
            torch.nested.nested_tensor(
                [torch.randn(3, 2, 16, device=d, dtype=torch.half), torch.randn(5, 2, 16, device=d, dtype=torch.half)],
                layout=torch.jagged,
                requires_grad=True,
            ).transpose(1, 2)
        )
        .transpose(1, 2)
        .values()
    ),
    "nested_softmax": lambda: torch.softmax(
        torch.nested.nested_tensor([torch.randn(3, 4, device=d), torch.randn(5, 4, device=d)]), -1
    ).to_padded_tensor(0.0),
    "cumprod": lambda: t(10).cumprod(0),
    "lobpcg": lambda: torch.lobpcg(spd(20), k=2)[0],
    "dist_all": lambda: sum(
        x.rsample().sum()
        for x in (
            torch.distributions.Gamma(t(3).exp(), t(3).exp()),
            torch.distributions.Beta(t(3).exp(), t(3).exp()),
            torch.distributions.Dirichlet(t(3).exp()),
            torch.distributions.Laplace(t(3), t(3).exp()),
            torch.distributions.StudentT(t(3).exp()),
        )
    ),
    "dist_lowrank": lambda: torch.distributions.LowRankMultivariateNormal(t(4), t(4, 2), t(4).exp()).rsample(),
    "dist_categorical": lambda: torch.distributions.Categorical(logits=t(4, 5)).entropy(),
    "dist_onehot": lambda: torch.distributions.OneHotCategorical(logits=t(4, 5)).sample(),
    "dist_normal_lp": lambda: torch.distributions.Normal(t(4), t(4).exp()).log_prob(torch.randn(4, device=d)),
    "dist_bernoulli": lambda: torch.distributions.Bernoulli(logits=t(4)).log_prob(torch.ones(4, device=d)),
    "dist_mixture": lambda: torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.ones(3, device=d)), torch.distributions.Normal(t(3), t(3).exp())
    ).log_prob(torch.zeros((), device=d)),
    "dist_kl": lambda: torch.distributions.kl_divergence(
        torch.distributions.Normal(t(4), t(4).exp()), torch.distributions.Normal(t(4), t(4).exp())
    ),
    "svd_gesvd": driver("gesvd"),
    "svd_gesvdj": driver("gesvdj"),
    "svd_gesvda": driver("gesvda"),
    "magma_svd": lib("magma", lambda: torch.linalg.svd(t(8, 4), full_matrices=False)[1]),
    "magma_lu": lib("magma", lambda: torch.linalg.lu_factor(bspd(5, 8))[0]),
    "cusolver_solve_b": lib("cusolver", lambda: torch.linalg.solve(bspd(5, 8), t(5, 8, 2))),
}

failed = {}
for name, function in operators.items():
    try:
        result = function()
        if result.requires_grad:
            (result.abs() if result.is_complex() else result.float()).sum().backward()
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
notes = values.notes()
json.dump(
    {"tried": len(operators), "failed": failed, "notes": notes, "assumed": list(values.assumptions())}, sys.stdout
)
